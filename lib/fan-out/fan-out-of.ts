import type { Database } from '@/db/client';
import { FanOut } from './fan-out';

const REGISTRY = Symbol.for('interlude.fan-outs');
const holder = globalThis as { [REGISTRY]?: Map<Database, FanOut> };

/** The process's one fan-out of a database. On `globalThis`, because Next bundles every route handler by itself. */
export function fanOutOf(database: Database): FanOut {
  holder[REGISTRY] ??= new Map();
  const known = holder[REGISTRY].get(database);
  if (known !== undefined) return known;
  const fanOut = new FanOut(database);
  holder[REGISTRY].set(database, fanOut);
  return fanOut;
}

/** Ends every stream of this process with `bye`. A server that is told to stop waits for its responses to end. */
export function endStreams(): void {
  for (const fanOut of holder[REGISTRY]?.values() ?? []) fanOut.close('shutdown');
}
