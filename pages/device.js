// Which adapter did we get, and the device made of it.

import { Fault } from "./faults.js";

/** Feature-tested field by field: an API that is missing costs its field, not the run. @param {GPUAdapter} adapter */
function identity(adapter) {
  const info = adapter.info ?? {};
  // The fields of info and limits are getters, which JSON would drop: they are copied one by one.
  /** @type {Record<string, number>} */
  const limits = {};
  for (const name in adapter.limits) {
    const value = adapter.limits[/** @type {keyof GPUSupportedLimits} */ (name)];
    if (typeof value === "number") limits[name] = value;
  }
  const old = /** @type {{ isFallbackAdapter?: boolean }} */ (adapter);
  return {
    vendor: info.vendor ?? "",
    architecture: info.architecture ?? "",
    device: info.device ?? "",
    description: info.description ?? "",
    is_fallback: info.isFallbackAdapter ?? old.isFallbackAdapter ?? null,
    features: [...adapter.features, ...language()].sort(),
    limits,
  };
}

/** What the browser's WGSL knows beyond its first version. @returns {string[]} */
const language = () => [...(/** @type {any} */ (navigator.gpu).wgslLanguageFeatures ?? [])];

/**
 * The limits to ask for: those wanted, as far as the adapter has them.
 *
 * @param {GPUAdapter} adapter
 * @param {Record<string, number>} wanted
 */
function affordable(adapter, wanted) {
  /** @type {Record<string, number>} */
  const limits = {};
  for (const [name, value] of Object.entries(wanted)) {
    const most = adapter.limits[/** @type {keyof GPUSupportedLimits} */ (name)];
    if (typeof most === "number") limits[name] = Math.min(value, most);
  }
  return limits;
}

/**
 * @param {{ features: string[], limits: Record<string, number>, power: GPUPowerPreference | null }} wanted
 *   features are asked for where the adapter has them; limits as far as it goes
 */
export async function openDevice(wanted) {
  if (!isSecureContext) throw new Fault("not_supported", "insecure context: WebGPU exists only on https or localhost");
  if (!navigator.gpu) throw new Fault("not_supported", "no WebGPU API: navigator.gpu is missing");
  const adapter = await navigator.gpu.requestAdapter(wanted.power ? { powerPreference: wanted.power } : {});
  if (!adapter) throw new Fault("not_supported", "no adapter: requestAdapter() gave null");
  const requiredFeatures = /** @type {GPUFeatureName[]} */ (wanted.features.filter((name) => adapter.features.has(name)));
  const device = await adapter.requestDevice({ requiredFeatures, requiredLimits: affordable(adapter, wanted.limits) });
  /** @type {Record<string, number>} */
  const granted = {};
  for (const name in device.limits) {
    const value = device.limits[/** @type {keyof GPUSupportedLimits} */ (name)];
    if (typeof value === "number") granted[name] = value;
  }
  return { device, adapter: { ...identity(adapter), enabled: [...requiredFeatures, ...language()].sort(), granted } };
}
