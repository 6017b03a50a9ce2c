// The same operations in a dedicated worker, one at a time.

import { call } from "./realm.js";

self.onmessage = async ({ data }) => self.postMessage(await call(data));
