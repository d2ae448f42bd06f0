"""`python -m kernelwright` is the command `kernelwright`."""

from kernelwright.cli import main

if __name__ == "__main__":
    main(prog_name="kernelwright")
