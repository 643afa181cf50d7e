/** The address of the client that sent a request, for servers that know it: a `Request` has no place for it. */

const addresses = new WeakMap<Request, string>();

export const setRemoteAddress = (request: Request, address: string): void => void addresses.set(request, address);

export const remoteAddressOf = (request: Request): string | undefined => addresses.get(request);
