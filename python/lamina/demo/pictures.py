"""Digits and guesses in a terminal."""

from __future__ import annotations

import sys

import lamina

SHOWN = 12
COLUMNS = 6


@lamina.no_grad()
def show(model, images: lamina.Tensor, labels: lamina.Tensor) -> None:
    """Draw some test digits with the guesses below them; wrong guesses come first."""
    chances = model(images).softmax(1)
    guesses = chances.argmax(1)
    wrong = (guesses != labels).nonzero().flatten().tolist()
    shown = wrong[: COLUMNS - 1]
    shown += [i for i in range(len(labels)) if i not in wrong][: SHOWN - len(shown)]
    shades = shades_for(sys.stdout.encoding)
    for start in range(0, len(shown), COLUMNS):
        row = shown[start : start + COLUMNS]
        pictures = [draw(images[i], shades) for i in row]
        captions = []
        for i in row:
            guess, label = int(guesses[i]), int(labels[i])
            truth = "right" if guess == label else f"is {label}"
            captions.append(f"{guess} ({float(chances[i, guess]):.0%}) {truth}".ljust(16))
        for lines in zip(*pictures, strict=True):
            print("   ".join(lines).rstrip())
        print("   ".join(captions).rstrip() + "\n")


def shades_for(encoding: str | None) -> str:
    """Five shades from empty to full that the terminal can show."""
    blocks = " ░▒▓█"
    try:
        blocks.encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return " .:*#"
    return blocks


def draw(image: lamina.Tensor, shades: str) -> list[str]:
    """Eight lines of sixteen characters."""
    return [
        "".join(shades[min(int(v * len(shades)), len(shades) - 1)] * 2 for v in line)
        for line in image.view(8, 8).tolist()
    ]
