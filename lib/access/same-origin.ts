import { AppError } from '@/lib/protocol/errors';

const SAFE_METHODS = ['GET', 'HEAD', 'OPTIONS'];

/**
 * Refuses a state-changing request that a browser sent with the operator's cookie on behalf of another site. Browsers
 * say where a request comes from in Sec-Fetch-Site (on trustworthy origins) and in Origin; a request that says neither
 * is refused too, because programs have the bearer token.
 *
 * @throws AppError `cross_origin`
 */
export function checkSameOrigin(request: Request): void {
  if (SAFE_METHODS.includes(request.method)) return;
  const site = request.headers.get('sec-fetch-site');
  const origin = request.headers.get('origin');
  const host = request.headers.get('host') ?? new URL(request.url).host;
  if (site !== null ? site === 'same-origin' : origin !== null && hostOf(origin) === host.toLowerCase()) return;
  throw new AppError(
    'cross_origin',
    'A request that changes something and is signed in by cookie must come from the dashboard’s own pages. From a program, send "Authorization: Bearer <token>" instead.',
  );
}

function hostOf(origin: string): string | null {
  try {
    return new URL(origin).host;
  } catch {
    return null;
  }
}
