import { EVERYTHING, type Scope } from '@interlude/protocol/scope';
import type { Database } from '@/db/client';

/** A database as far as somebody may see it. Everything that is read for people or programs is read through one. */
export interface Sight extends Pick<Database, 'reader' | 'reads'> {
  scope: Scope;
  /** Whether whoever it is for is told no secrets. */
  redacts: boolean;
}

export function sightOf({ reader, reads }: Database, scope: Scope, redacts = false): Sight {
  return { reader, reads, scope, redacts };
}

/** For the server's own work, which is no answer to anybody. */
export function wholeSight(database: Database): Sight {
  return sightOf(database, EVERYTHING);
}
