import { headers } from 'next/headers';

/** The nonce of the response's content policy, needed by every inline script. */
export async function pageNonce(): Promise<string | undefined> {
  return (await headers()).get('x-nonce') ?? undefined;
}
