"""Command line of the demo."""

import argparse
import sys
from pathlib import Path

import lamina
from lamina.demo import digits

SHOWN = 12
COLUMNS = 6


def main(arguments: list[str] | None = None) -> int:
    """Train, show some guesses, return the exit status."""
    options = make_parser().parse_args(arguments)
    try:
        from tqdm import tqdm
    except ModuleNotFoundError:
        print("lamina.demo: needs tqdm for its progress bar: pip install tqdm", file=sys.stderr)
        return 1
    try:
        return run(options, tqdm)
    except (OSError, ValueError) as error:
        print(f"lamina.demo: cannot read the digits: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped.", file=sys.stderr)
        return 130


def make_parser() -> argparse.ArgumentParser:
    """The options."""
    parser = argparse.ArgumentParser(
        prog="lamina.demo",
        description="Train a classifier with two hidden layers on 1,437 handwritten digits, test it "
        "on 360 others, and show some of its guesses.",
    )
    parser.add_argument("--quick", action="store_true", help="12 passes instead of 100")
    parser.add_argument("--epochs", type=positive, help="passes over the training digits")
    parser.add_argument("--seed", type=int, default=0, help="of weights and order (default: 0)")
    parser.add_argument("--data", type=Path, help="file of digits (default: the shipped one)")
    return parser


def positive(text: str) -> int:
    """A whole number above zero."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"expected at least 1, got {value}")
    return value


def run(options: argparse.Namespace, progress_bar) -> int:
    """Train under a progress bar and print the outcome."""
    epochs = options.epochs or (12 if options.quick else 100)
    images, labels, test_images, test_labels = digits.split(
        *digits.load(options.data or digits.default_data())
    )
    lamina.manual_seed(options.seed)
    model = digits.Classifier()
    count = len(labels)
    print(
        f"Lamina {lamina.__version__}: {count} digits to learn from, {len(test_labels)} to test on; "
        f"layers {'-'.join(map(str, digits.SIZES))}"
    )
    done = 0
    with progress_bar(
        total=epochs * count, unit=" samples", unit_scale=True, desc="training", mininterval=0.05
    ) as bar:
        for samples, loss in digits.train(model, images, labels, epochs):
            done += samples
            bar.update(samples)
            if done % count == 0:
                share = digits.accuracy(model, test_images, test_labels)
                bar.set_postfix_str(f"loss {loss.item():.4f}, test {share:.1%}", refresh=False)
        seconds = bar.format_dict["elapsed"]
    share = digits.accuracy(model, test_images, test_labels)
    print(f"Test accuracy {share:.2%} after {epochs} passes; {done / seconds:,.0f} samples/s\n")
    show(model, test_images, test_labels)
    return 0


@lamina.no_grad()
def show(model: digits.Classifier, images: lamina.Tensor, labels: lamina.Tensor) -> None:
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
        for lines in zip(*pictures):
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


if __name__ == "__main__":
    sys.exit(main())
