import { AppError } from '@interlude/protocol/errors';

/** Trusted sources of a client address. */
export interface ProxyTrust {
  /** Header that lists addresses, nearest last. The server itself appends the peer address. */
  header: string;
  /** Address prefixes of trusted proxies, as bit strings. */
  prefixes: readonly string[];
}

const NO_PROXIES: ProxyTrust = { header: 'x-forwarded-for', prefixes: [] };

/** IPv4 addresses are compared as IPv4-mapped IPv6, `::ffff:0:0/96`. */
const MAPPED = '0'.repeat(80) + '1'.repeat(16);
/** Providers assign up to a /48 to one subscriber, who can choose any address within it. */
const IPV6_CLIENT_BITS = 48;

/**
 * Reads `INTERLUDE_TRUSTED_PROXY`: addresses and CIDR ranges, comma-separated. Vercel puts the client address in a
 * header that clients can't set.
 *
 * @throws AppError `unavailable` for an invalid entry
 * @see https://vercel.com/docs/headers/request-headers#x-vercel-forwarded-for
 */
export function proxyTrust(env: Record<string, string | undefined>): ProxyTrust {
  const ranges = (env.INTERLUDE_TRUSTED_PROXY ?? '').split(',').map((range) => range.trim());
  const prefixes = ranges.filter((range) => range !== '').map(prefixOf);
  return { header: env.VERCEL === '1' ? 'x-vercel-forwarded-for' : NO_PROXIES.header, prefixes };
}

/**
 * Key of a request's client: the bits of its IPv4 address or of its IPv6 /48; empty if unknown. Starts at the
 * connection's peer and moves outwards through the listed addresses while they belong to trusted proxies, so a client
 * can't choose its key.
 */
export function clientAddress(headers: Pick<Headers, 'get'>, { header, prefixes }: ProxyTrust = NO_PROXIES): string {
  let client = '';
  for (const entry of (headers.get(header) ?? '').split(',').reverse()) {
    const bits = bitsOf(entry.trim());
    if (bits === null) break;
    client = bits;
    if (!prefixes.some((prefix) => bits.startsWith(prefix))) break;
  }
  return client.startsWith(MAPPED) ? client : client.slice(0, IPV6_CLIENT_BITS);
}

function prefixOf(range: string): string {
  const [address = '', length, ...more] = range.split('/');
  const bits = bitsOf(address);
  const most = bits?.startsWith(MAPPED) && !address.includes(':') ? 32 : 128;
  const isLength = length === undefined || (/^\d{1,3}$/.test(length) && Number(length) <= most);
  if (bits !== null && isLength && more.length === 0) {
    return bits.slice(0, 128 - most + Number(length ?? most));
  }
  throw new AppError(
    'unavailable',
    `INTERLUDE_TRUSTED_PROXY: ${JSON.stringify(range)} is not an address or CIDR range. Set it to values such as 10.0.0.7 or 172.18.0.0/16, separated by commas.`,
  );
}

/** The 128 bits of an address, with or without port or zone; null for other text. */
function bitsOf(text: string): string | null {
  const v4 = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})(:\d+)?$/.exec(text);
  if (v4 !== null) {
    const bytes = v4.slice(1, 5).map(Number);
    return bytes.every((byte) => byte < 256) ? MAPPED + bytes.map((byte) => binary(byte, 8)).join('') : null;
  }
  const [, bracketed] = /^\[(.*)\](?::\d+)?$/.exec(text) ?? [];
  const address = `http://[${(bracketed ?? text).replace(/%.*$/, '')}]`;
  if (!text.includes(':') || !URL.canParse(address)) return null;
  const [head = [], tail = []] = new URL(address).hostname
    .slice(1, -1)
    .split('::')
    .map((part) => (part === '' ? [] : part.split(':')));
  const zeros = Array.from({ length: 8 - head.length - tail.length }, () => '0');
  return [...head, ...zeros, ...tail].map((group) => binary(Number.parseInt(group, 16), 16)).join('');
}

function binary(value: number, length: number): string {
  return value.toString(2).padStart(length, '0');
}
