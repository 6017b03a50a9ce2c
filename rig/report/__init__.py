"""The report room: what a run found, as one page that opens offline. `page.render` is its only way in."""
