import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';
import type { Database } from '@/db/client';
import type { WriteJob, WriteQueue } from '@/db/write-queue';
import { AppError } from '@/lib/protocol/errors';
import { type Act, noteAct } from './audit-entry';
import type { Principal } from './principal';

/** How much is kept of what a program calls itself. */
const MAX_ORIGIN = 200;
/** What nobody was refused: the request made no sense, or the server could not say. */
const NO_RESULT: readonly string[] = ['malformed', 'invalid_argument', 'too_large', 'unavailable', 'internal'];

/** What a request asks for. */
export function actOf(
  request: Request,
  principal: Principal,
  action: string,
  ids: { readonly agentId?: string; readonly sessionId?: string },
  body: Uint8Array | null,
): Act {
  const { pathname, search } = new URL(request.url);
  const digest = sha256.create().update(utf8ToBytes(`${request.method} ${pathname}${search}\n`));
  if (body !== null) digest.update(body);
  return {
    principal,
    action,
    agentId: ids.agentId ?? null,
    sessionId: ids.sessionId ?? null,
    target: pathname,
    digest: bytesToHex(digest.digest()),
    origin: originOf(request.headers),
  };
}

/** The origin of the page, or what the program calls itself. */
export function originOf(headers: Headers): string {
  return (headers.get('origin') ?? headers.get('user-agent') ?? '').slice(0, MAX_ORIGIN);
}

/** The database for whoever does `act`: each transaction that it writes has its entry in the audit. */
export function audited(database: Database, act: Act, now: () => number): Database {
  const { writes } = database;
  const run = <T>(job: WriteJob<T>, bytes?: number): Promise<T> =>
    writes.run(async (transaction) => {
      const value = await job(transaction);
      await noteAct(transaction, act, 'done', now());
      return value;
    }, bytes);
  const noted = Object.create(writes, { run: { value: run } }) as WriteQueue;
  return { ...database, writes: noted };
}

/** Notes what somebody was refused. Never rejects: the refusal stands without it. */
export async function noteRefusal(database: Database, act: Act, error: unknown, now: number): Promise<void> {
  if (!(error instanceof AppError) || NO_RESULT.includes(error.code)) return;
  await database.writes.run((transaction) => noteAct(transaction, act, error.code, now)).catch(() => {});
}
