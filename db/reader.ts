import type { InStatement, ResultSet } from '@libsql/client';

/** What a statement answers. How many rows it changed is asked with `RETURNING`: not every database reports it in another way. */
export type ResultRows = Pick<ResultSet, 'rows'>;

/** Reads, each on its own or several of one moment. */
export interface Reader {
  execute(statement: InStatement): Promise<ResultRows>;
  /** All of them see one moment. */
  batch(statements: InStatement[], mode: 'read'): Promise<ResultRows[]>;
  /** For reads of one moment of which each depends on the one before. Must be closed. */
  transaction(mode: 'read'): Promise<Snapshot>;
}

export interface Snapshot {
  execute(statement: InStatement): Promise<ResultRows>;
  batch(statements: InStatement[]): Promise<ResultRows[]>;
  close(): void;
}

/** One after the other: what a batch is, where nothing takes several at once. */
export async function inOrder(
  statements: readonly InStatement[],
  execute: (statement: InStatement) => Promise<ResultRows>,
): Promise<ResultRows[]> {
  const answers: ResultRows[] = [];
  for (const statement of statements) answers.push(await execute(statement));
  return answers;
}
