"""The command line of all three examples."""

import argparse
from pathlib import Path


def parse(description: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("total_epochs", type=int, help="how many epochs to train in all")
    parser.add_argument("save_every", type=int, help="write a snapshot after each so many epochs")
    parser.add_argument("--batch_size", type=int, default=32, help="samples in a batch on each rank (default: 32)")
    parser.add_argument("--snapshot", type=Path, default=Path("snapshot.pt"), help="default: snapshot.pt")
    return parser.parse_args()
