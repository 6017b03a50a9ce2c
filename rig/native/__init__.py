"""What runs inside the process of a native executor: the operations of pages/realm.js once more, without a browser."""
