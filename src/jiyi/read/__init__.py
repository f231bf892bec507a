"""Query in, hits out: interpret → gather → score → rank → assemble."""
