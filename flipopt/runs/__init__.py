"""Long work: split over the cores."""
