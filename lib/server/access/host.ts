import { AppError } from '@interlude/protocol/errors';
import type { AccessSettings } from './access-settings';

const LOOPBACK = ['localhost', '127.0.0.1', '[::1]'];

/**
 * Refuses a request that was sent to a name this server does not go by. A hostile page can point its own name at
 * 127.0.0.1 and then counts as same-origin (DNS rebinding), but it can't send any Host except that name.
 *
 * @throws AppError `misdirected_host`
 */
export function checkHost(request: Request, settings: AccessSettings): void {
  if (isLocalName(request, settings)) return;
  const name = nameOf(request);
  if (settings.allowedHosts.some((allowed) => allowed === name || `[${allowed}]` === name)) return;
  // An address can't be rebound: only names are looked up.
  if (settings.allowAddresses && isAddress(name)) return;
  throw new AppError(
    'misdirected_host',
    `This server does not answer under the name ${JSON.stringify(name)}. Use http://localhost, or add the name to INTERLUDE_ALLOWED_HOSTS and start again.`,
  );
}

/** Whether it was sent to a name of this machine, which leads nobody else here. */
export function isLocalName(request: Request, { localName }: Pick<AccessSettings, 'localName'>): boolean {
  const name = nameOf(request);
  return LOOPBACK.includes(name) || name === localName;
}

/** Where a request was sent to, with its port. */
export function hostOf({ headers, url }: Pick<Request, 'headers' | 'url'>): string {
  return headers.get('host') ?? new URL(url).host;
}

/** The same without its port, in lower case and without a trailing dot; an IPv6 address keeps its brackets. */
function nameOf(request: Request): string {
  return hostOf(request).trim().toLowerCase().replace(/:\d*$/, '').replace(/\.$/, '');
}

function isAddress(name: string): boolean {
  return /^\d{1,3}(\.\d{1,3}){3}$/.test(name) || /^\[[0-9a-f:.]+\]$/.test(name);
}
