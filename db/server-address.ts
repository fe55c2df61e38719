/** Where a libSQL server is, as HTTP has it. */
export interface ServerAddress {
  /** `http:` or `https:`. */
  url: string;
  authToken: string | undefined;
}

/**
 * Reads what libSQL's clients take as the address of a server: `libsql:`, `ws:` and `wss:` name the same one as `http:` and
 * `https:`, and `?authToken=` and `?tls=0` are settings. Other settings are left in it, for the client to refuse.
 *
 * @throws TypeError for what is no address
 */
export function serverAddress(address: string, authToken: string | undefined): ServerAddress {
  const url = new URL(address);
  const { searchParams } = url;
  const token = searchParams.get('authToken') ?? authToken;
  const isPlain = url.protocol === 'libsql:' ? searchParams.get('tls') === '0' : /^(http|ws):$/.test(url.protocol);
  if (/^[01]$/.test(searchParams.get('tls') ?? '')) searchParams.delete('tls');
  searchParams.delete('authToken');
  return { url: url.href.replace(/^(libsql|wss?):/, isPlain ? 'http:' : 'https:'), authToken: token };
}
