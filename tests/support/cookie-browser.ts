/** As much of a browser as a sign-in needs: cookies by origin and path, and where it was sent. */
export class CookieBrowser {
  /** By origin, then name. */
  readonly #jars = new Map<string, Map<string, { value: string; path: string }>>();

  /** Visits an address and follows where it leads, until it leads to another origin. */
  async follow(address: string | URL, init: RequestInit = {}): Promise<{ url: URL; response: Response }> {
    let url = new URL(address);
    let response = await this.#visit(url, init);
    for (;;) {
      const location = response.headers.get('location');
      if (location === null) return { url, response };
      await response.body?.cancel();
      const next = new URL(location, url);
      if (next.origin !== url.origin) return { url: next, response };
      url = next;
      response = await this.#visit(url);
    }
  }

  /** What it sends to an address. */
  request(address: string | URL, init: RequestInit = {}): Request {
    const headers = new Headers(init.headers);
    const cookie = this.cookiesFor(new URL(address));
    if (cookie !== '') headers.set('cookie', cookie);
    return new Request(address, { ...init, headers });
  }

  keep(url: URL, headers: Headers): void {
    const jar = this.#jars.get(url.origin) ?? new Map();
    this.#jars.set(url.origin, jar);
    for (const line of headers.getSetCookie()) {
      const [pair = '', ...attributes] = line.split(';').map((part) => part.trim());
      const name = pair.slice(0, pair.indexOf('='));
      const attribute = (wanted: string) =>
        attributes.find((one) => one.toLowerCase().startsWith(`${wanted}=`))?.slice(wanted.length + 1);
      const expires = attribute('expires');
      const isGone = attribute('max-age') === '0' || (expires !== undefined && Date.parse(expires) < Date.now());
      if (isGone) jar.delete(name);
      else jar.set(name, { value: pair.slice(name.length + 1), path: attribute('path') ?? '/' });
    }
  }

  cookiesFor(url: URL): string {
    const all = [...(this.#jars.get(url.origin) ?? [])];
    const meant = all.filter(([, { path }]) => `${url.pathname}/`.startsWith(path.endsWith('/') ? path : `${path}/`));
    return meant.map(([name, { value }]) => `${name}=${value}`).join('; ');
  }

  async #visit(url: URL, init: RequestInit = {}): Promise<Response> {
    const { headers } = this.request(url, init);
    const response = await fetch(url, { ...init, headers, redirect: 'manual' });
    this.keep(url, response.headers);
    return response;
  }
}
