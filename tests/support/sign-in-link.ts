import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { SignInCode } from '@interlude/protocol/access';
import { onTestFinished } from 'vitest';

/** Asks a server for a new sign-in link. @param origin the address that the link begins with */
export async function newSignInLink(server: { url: string; token: string }, origin = server.url): Promise<string> {
  const headers = { authorization: `Bearer ${server.token}` };
  const answer = await fetch(`${server.url}/api/v1/sign-in-codes`, { method: 'POST', headers });
  return `${origin}${((await answer.json()) as SignInCode).path}`;
}

/** Serves a page of another site until the end of the test. @returns its address */
export async function anotherSite(html: string): Promise<string> {
  const site = createServer((_, response) => response.setHeader('content-type', 'text/html').end(html));
  site.listen(0, '127.0.0.1');
  await once(site, 'listening');
  onTestFinished(() => {
    site.closeAllConnections();
    site.close();
  });
  return `http://localhost:${(site.address() as AddressInfo).port}/`;
}
