"""Many builds of Chromium side by side: measured in turn, compared with a control, their steps found and explained."""
