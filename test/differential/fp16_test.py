#!/usr/bin/env python3
"""differential_test.py with --precision fp16 (MLC_FP16_GRAPHS graphs, default 200); more arguments as there."""
import sys

import differential_test

if __name__ == "__main__":
    sys.exit(differential_test.main(["--precision", "fp16", *sys.argv[1:]]))
