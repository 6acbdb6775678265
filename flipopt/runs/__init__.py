"""Long work: split over the cores, rows kept on disk, facts about the machine."""
