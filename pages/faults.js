// What can go wrong with a device, caught as an outcome and never as a figure.

/**
 * @typedef {"validation_error" | "device_lost" | "out_of_memory" | "timeout" | "not_supported" | "crashed"} Outcome
 */

/** A failed call, with the outcome that its samples get. */
export class Fault extends Error {
  /**
   * @param {Outcome} outcome
   * @param {string} detail
   */
  constructor(outcome, detail) {
    super(detail);
    this.outcome = outcome;
  }
}

const SCOPES = /** @type {const} */ (["out-of-memory", "internal", "validation"]);

/** Watches one device from its creation on: error scopes, errors outside any scope, loss. */
export class Watch {
  /** @param {GPUDevice} device */
  constructor(device) {
    this.device = device;
    /** @type {string | null} */
    this.lost = null;
    /** @type {GPUError[]} */
    this.strays = [];
    device.addEventListener("uncapturederror", (event) => {
      this.strays.push(/** @type {GPUUncapturedErrorEvent} */ (event).error);
    });
    device.lost.then((info) => { this.lost = `${info.reason || "unknown"}: ${info.message}`; });
  }

  open() {
    for (const scope of SCOPES) this.device.pushErrorScope(scope);
  }

  /** Closes the scopes that `open` opened. @returns {Promise<Array<GPUError | null>>} */
  close() {
    return Promise.all(SCOPES.map(() => this.device.popErrorScope()));
  }

  /**
   * Throws the first fault there is among `errors` and those that no scope caught.
   *
   * @param {Array<GPUError | null>} errors
   */
  raise(errors) {
    if (this.lost !== null) throw new Fault("device_lost", this.lost);
    const all = [...errors, ...this.strays].filter((error) => error !== null);
    this.strays = [];
    if (all.length === 0) return;
    const memory = all.some((error) => error instanceof GPUOutOfMemoryError);
    throw new Fault(memory ? "out_of_memory" : "validation_error", all.map((error) => error.message).join("\n"));
  }

  /**
   * Runs `work` inside the scopes; a fault of the device wins over what `work` itself threw.
   *
   * @template T
   * @param {() => T | Promise<T>} work
   * @returns {Promise<T>}
   */
  async guard(work) {
    this.open();
    /** @type {unknown} */
    let thrown = null;
    /** @type {T | undefined} */
    let value;
    try {
      value = await work();
    } catch (error) {
      thrown = error;
    }
    // A hung queue answers nothing more, scopes included, so there is nothing to ask it.
    if (thrown instanceof Fault && thrown.outcome === "timeout") throw thrown;
    this.raise(await this.close().catch(() => []));
    if (thrown !== null) throw thrown;
    return /** @type {T} */ (value);
  }
}
