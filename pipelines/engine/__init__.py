"""Where tasks run: in this process, in workers, on a cluster; the only room that imports Beam."""
