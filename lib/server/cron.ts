import { sameSecret } from '@/lib/access/digest';
import { checkHost } from '@/lib/access/host';
import { AppError } from '@/lib/protocol/errors';
import type { OpenServer } from './routes';
import { doAllDue } from './server-parts';

/**
 * `GET /cron`: does everything that is due, now. For hosts whose processes do not last, which call it now and then; what
 * somebody would see is also done before it is shown.
 *
 * @throws AppError `not_found` where no secret is set; `unauthenticated`
 */
export async function cron(request: Request, server: OpenServer): Promise<Response> {
  const settings = server.settings();
  checkHost(request, settings);
  const { cronSecret = null } = settings;
  if (cronSecret === null)
    throw new AppError('not_found', 'Set INTERLUDE_CRON_SECRET to use this. See docs/deploy.md.');
  const secret = /^Bearer +(\S+) *$/i.exec(request.headers.get('authorization') ?? '')?.[1] ?? '';
  await server.guesses.turn();
  if (!sameSecret(secret, cronSecret)) {
    server.guesses.wrong();
    throw new AppError('unauthenticated', 'Send "Authorization: Bearer <INTERLUDE_CRON_SECRET>".', {
      headers: { 'www-authenticate': 'Bearer realm="interlude"' },
    });
  }
  await doAllDue(await server.parts());
  return Response.json({ status: 'done' }, { headers: { 'cache-control': 'no-store' } });
}
