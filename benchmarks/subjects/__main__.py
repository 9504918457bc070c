"""The process of one job: ``python -m benchmarks.subjects SUBJECT JOB PARAMETERS``."""

from __future__ import annotations

import importlib
import json
import sys

from benchmarks.measure import report

if __name__ == "__main__":
    subject, job, text = sys.argv[1:]
    module = importlib.import_module(f"benchmarks.subjects.{subject}")
    report(getattr(module, job)(json.loads(text)))
