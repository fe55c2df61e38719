import { headers } from 'next/headers';

/** The nonce of this response's Content-Security-Policy, which every inline script of the page must carry. */
export async function pageNonce(): Promise<string | undefined> {
  return (await headers()).get('x-nonce') ?? undefined;
}
