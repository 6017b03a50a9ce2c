"""Programs as data: builders, and what each must compute (`reference`). Nothing here knows how they are submitted."""
