"""Mixed precision: products in a smaller dtype, sums of losses in float32."""

from lamina.amp.autocast_mode import autocast, custom_bwd, custom_fwd, is_autocast_available
from lamina.amp.grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]
