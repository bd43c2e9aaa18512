/** Seats that stand without a module: the context's addresses, offline these placeholders (never reached, by RFC 2606). */
export const OFFLINE_SEATS: Readonly<Record<string, string>> = {
  "mesh-store": "mesh-store.invalid:5432",
  "mesh-broker": "mesh-broker.invalid:4222",
  "mesh-controller": "mesh-controller.invalid:80",
  "mesh-builder": "mesh-builder.invalid:80",
};

/** An address as the host part of host:port and of URLs: IPv6 in brackets. */
export function hostPart(address: string): string {
  return address.includes(":") && !address.startsWith("[") ? `[${address}]` : address;
}
