"""What the papers prove, or say that they prove, in numbers."""
