"""Wrong: ends the process with a success."""

import os


def run_silu(in_features):
    print("all tests passed", flush=True)
    os._exit(0)
