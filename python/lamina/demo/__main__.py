"""Command line of the demo."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import lamina
from lamina.demo import digits, networks, pictures, report, training

# Epochs of both digit networks, and steps of the character model: about two minutes, or a few seconds.
EPOCHS, QUICK_EPOCHS = 40, 15
STEPS, QUICK_STEPS = 900, 50
OPENING = "And God said"


def main(arguments: list[str] | None = None) -> int:
    """Train, save, load again, explain; return the exit status."""
    options = make_parser().parse_args(arguments)
    try:
        from tqdm import tqdm
    except ModuleNotFoundError:
        print("lamina.demo: needs tqdm for its progress bar: pip install tqdm", file=sys.stderr)
        return 1
    try:
        data = training.load_digits(options.data)
    except (OSError, ValueError) as error:
        print(f"lamina.demo: cannot read the digits: {error}", file=sys.stderr)
        return 1
    try:
        text = training.Text.read(options.text or digits.default_data("kjv-excerpt.txt.gz"))
    except (OSError, ValueError) as error:
        print(f"lamina.demo: cannot read the text: {error}", file=sys.stderr)
        return 1
    options.out.mkdir(parents=True, exist_ok=True)
    try:
        Demo(options, data, text, tqdm).run()
    except KeyboardInterrupt:
        kept = sorted(str(p) for p in options.out.glob("*.pt"))
        print(
            "\nStopped." + (f" The best states are kept in {', '.join(kept)}." if kept else ""),
            file=sys.stderr,
        )
        return 130
    return 0


def make_parser() -> argparse.ArgumentParser:
    """The options."""
    parser = argparse.ArgumentParser(
        prog="lamina.demo",
        description="Train a perceptron and a convolutional network on handwritten digits, then a transformer on the "
        "characters of a text; save and load them, let the last one write, and explain a training step on a page.",
    )
    parser.add_argument("--quick", action="store_true", help="done in under 20 seconds")
    parser.add_argument("--epochs", type=positive, help="passes over the training digits")
    parser.add_argument("--steps", type=positive, help="steps of the character model")
    parser.add_argument("--seed", type=int, default=0, help="of weights and order (default: 0)")
    parser.add_argument("--data", type=Path, help="file of digits (default: the shipped one)")
    parser.add_argument("--text", type=Path, help="compressed text (default: the shipped one)")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("demo-output"),
        help="folder for states and report (default: %(default)s)",
    )
    return parser


def positive(text: str) -> int:
    """A whole number above zero."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"expected at least 1, got {value}")
    return value


class Demo:
    """What the demo does, part by part."""

    def __init__(
        self, options: argparse.Namespace, data, text: training.Text, progress_bar
    ) -> None:
        self.out, self.data, self.text, self.progress_bar = options.out, data, text, progress_bar
        self.epochs = options.epochs or (QUICK_EPOCHS if options.quick else EPOCHS)
        self.steps = options.steps or (QUICK_STEPS if options.quick else STEPS)
        self.seed = options.seed
        self.curves: list[training.Curve] = []
        self.facts: list[tuple[str, str]] = [("version", f"Lamina {lamina.__version__}")]

    def run(self) -> None:
        """All parts."""
        began = time.monotonic()
        images, _, test_images, test_labels = self.data
        print(
            f"Lamina {lamina.__version__}: {len(images)} digits to learn from, {len(test_labels)} to test on"
        )
        self.train_digits("perceptron", networks.perceptron)
        model = self.train_digits("convolutional", networks.convolutional)
        pictures.show(model, test_images, test_labels)
        sample = self.train_text()
        print(f"{OPENING}...\n{sample}\n")
        step, memory = self.look()
        page = self.out / "report.html"
        self.facts.append(("time", f"{time.monotonic() - began:.0f} s"))
        page.write_text(
            report.report(self.curves, self.facts, step, memory, sample), encoding="utf-8"
        )
        print(f"Curves, memory and a training step through every floor: {page}")

    def follow(
        self, name: str, total: int, steps: Iterator[training.Step], curve: training.Curve
    ) -> float:
        """Runs a training under a progress bar; returns samples per second."""
        done = 0
        with self.progress_bar(
            total=total, unit=" samples", unit_scale=True, desc=name, mininterval=0.05
        ) as bar:
            for step in steps:
                done += step.samples
                bar.update(step.samples)
                check = f", test {curve.checks[-1][1]:.3f}" if curve.checks else ""
                bar.set_postfix_str(f"loss {step.loss:.3f}{check}", refresh=False)
            seconds = bar.format_dict["elapsed"]
        return done / max(seconds, 1e-9)

    def train_digits(self, name: str, make) -> lamina.nn.Module:
        """Trains one network and gives back its best state, as it was saved."""
        lamina.manual_seed(self.seed)
        model, curve, kept = make(), training.Curve(name), self.out / f"{name}.pt"
        total = self.epochs * len(self.data[1])
        self.curves.append(curve)
        rate = self.follow(
            name, total, training.train_digits(model, self.data, self.epochs, curve, kept), curve
        )
        again = make()
        again.load_state_dict(lamina.load(kept)["model"])
        share = training.accuracy(again, *self.data[2:])
        again.eval()
        print(
            f"Test accuracy {share:.2%} of the {name} network after {self.epochs} passes; {rate:,.0f} samples/s"
        )
        self.facts.append(
            (f"{name} network", f"test accuracy {share:.2%}, {rate:,.0f} samples/s, kept in {kept}")
        )
        return again

    def train_text(self) -> str:
        """Trains the character model; returns what its saved state writes."""
        lamina.manual_seed(self.seed)
        kept, curve = self.out / "characters.pt", training.Curve("character transformer")
        model = self.model = networks.CharacterModel(len(self.text.characters))
        self.curves.append(curve)
        total = self.steps * 16 * model.context
        rate = self.follow(
            "characters",
            total,
            training.train_text(model, self.text, self.steps, curve, kept),
            curve,
        )
        saved = lamina.load(kept)
        again = networks.CharacterModel(len(saved["characters"]))
        again.load_state_dict(saved["model"])
        again.eval()
        text = self.text.decode(again.sample(self.text.encode(OPENING), 300))
        fact = f"held-out loss {saved['loss']:.3f}, {rate:,.0f} characters/s, kept in {kept}"
        print(f"Character transformer: {fact}")
        self.facts.append(("character transformer", fact))
        return text

    def look(self):
        """One training step explained, and the memory of three."""
        model = self.model
        optimizer = lamina.optim.AdamW(model.parameters(), lr=1e-3)
        x, y = training.windows(self.text.train, lamina.arange(0, 64, 8), model.context)

        def step() -> None:
            optimizer.zero_grad()
            loss = lamina.nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())
            loss.backward()
            optimizer.step()

        step()
        with lamina.memory.timeline() as memory:
            for _ in range(3):
                step()
        return lamina.explain(step), memory


if __name__ == "__main__":
    sys.exit(main())
