"""The room of the kernel: ``%%durable`` and ``%durable`` in IPython."""
