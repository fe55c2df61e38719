import { AppError } from '@interlude/protocol/errors';
import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';
import type { Database } from '@/db/client';
import type { JobOptions, WriteJob, Writes, WriteTransaction } from '@/db/writes';
import { type Act, noteAct } from './audit-entry';
import { overMeanwhile } from './authenticate';
import { CREDENTIAL_COLUMNS, credentialFromRow, isLive } from './credential-rows';
import type { Principal } from './principal';

/** How much is kept of what a program calls itself. */
const MAX_ORIGIN = 200;

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

/**
 * The database for whoever does `act`: the first transaction that it writes has its entry in the audit, and each is
 * refused if the sender's credential has ended, or lost its role, while the request was on its way.
 */
export function audited(
  database: Database,
  act: Act,
  now: () => number,
): { database: Database; noted: { count: number } } {
  const { writes } = database;
  const noted = { count: 0 };
  const run = async <T>(job: WriteJob<T>, about?: JobOptions): Promise<T> => {
    // what takes many transactions is one act, noted with the first of them
    const isFirst = noted.count === 0;
    const done = await writes.run(
      async (transaction) => {
        await requireStanding(transaction, act.principal, now());
        const value = await job(transaction);
        if (isFirst) await noteAct(transaction, withOutcome(act, value), 'done', now());
        return value;
      },
      isFirst ? { ...about, keys: [...(about?.keys ?? []), 'audit'] } : about,
    );
    noted.count += 1;
    return done;
  };
  const queue = Object.create(writes, { run: { value: run } }) as Writes;
  return { database: { ...database, writes: queue }, noted };
}

/** What was made by it is told with it. */
function withOutcome(act: Act, value: unknown): Act {
  const { credential } = Object(value) as { credential?: { id?: unknown } };
  return typeof credential?.id === 'string' && !act.target.endsWith(credential.id)
    ? { ...act, target: `${act.target}/${credential.id}` }
    : act;
}

/** @throws AppError `unauthenticated`, `forbidden` */
async function requireStanding(
  transaction: WriteTransaction,
  { credentialId, credentialKind, role }: Principal,
  now: number,
): Promise<void> {
  if (credentialKind === 'owner') return;
  transaction.rely('access');
  const { rows } = await transaction.execute({
    sql: `SELECT ${CREDENTIAL_COLUMNS} FROM credentials WHERE id = ?`,
    args: [credentialId],
  });
  const credential = rows[0] === undefined ? null : credentialFromRow(rows[0]);
  // when it was last used is written down later
  if (credential === null || !isLive({ ...credential, lastUsedAt: now }, now)) throw overMeanwhile();
  if (credential.role === role) return;
  throw new AppError('forbidden', 'Your role changed while this was on its way. Look again, and repeat it if you may.');
}
