from rtmc.cli import main

main()
