"""The demo: a counting model endpoint on loopback, and the main job that kills a kernel and resumes it."""
