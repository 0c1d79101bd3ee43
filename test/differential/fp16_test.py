#!/usr/bin/env python3
"""Runs differential_test.py with --precision fp16 (MLC_FP16_GRAPHS graphs, default 200). It accepts the same arguments."""
import sys

import differential_test

if __name__ == "__main__":
    sys.exit(differential_test.main(["--precision", "fp16", *sys.argv[1:]]))
