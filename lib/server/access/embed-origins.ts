import { AppError } from '@interlude/protocol/errors';

/**
 * The origins whose pages may show an embed, exactly as browsers write them: scheme, host and port, no wildcard.
 *
 * @throws AppError `unavailable` when one is no such origin: nothing is embedded by guess
 */
export function embedOrigins(env: Record<string, string | undefined>): readonly string[] {
  const named = (env.INTERLUDE_EMBED_ORIGINS ?? '').split(',').map((one) => one.trim());
  return [...new Set(named.filter((one) => one !== '').map(originOf))];
}

function originOf(named: string): string {
  // a name with a star is one to URL, and a pattern to browsers
  if (URL.canParse(named) && !named.includes('*')) {
    const { protocol, origin, href } = new URL(named);
    // a path, a query or a name would be left out in silence
    if (/^https?:$/.test(protocol) && href === `${origin}/`) return origin;
  }
  throw new AppError(
    'unavailable',
    `INTERLUDE_EMBED_ORIGINS names ${JSON.stringify(named)}, which is no origin. Write each as in "https://console.example.com:8443", with commas between, and start again.`,
  );
}
