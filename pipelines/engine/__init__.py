"""Where tasks run: in this process, in workers, on a cluster; alone in knowing Beam."""
