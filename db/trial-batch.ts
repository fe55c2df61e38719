import { type InStatement, LibsqlError } from '@libsql/client';
import { BatchCond, ClientError, type HttpClient, openHttp, ResponseError, Stmt } from '@libsql/hrana-client';
import type { ResultRows } from './reader';

/**
 * Batches that are looked at and taken back, which libSQL's client has no call for: one request, at whose end the
 * transaction is rolled back whatever has become of it. So nobody else waits for longer than the server works on it.
 */
export class TrialBatches {
  readonly #client: HttpClient;

  constructor(url: string, authToken: string | undefined, fetch?: (request: Request) => Promise<Response>) {
    this.#client = openHttp(url, authToken, fetch);
    this.#client.intMode = 'number';
  }

  /** @throws LibsqlError of the first statement that is refused, and what `fetch` throws */
  async run(statements: readonly InStatement[]): Promise<ResultRows[]> {
    try {
      return await this.#send(statements);
    } catch (error) {
      if (!(error instanceof ClientError)) throw error;
      const code = error instanceof ResponseError ? (error.code ?? 'UNKNOWN') : 'HRANA_CLOSED_ERROR';
      throw new LibsqlError(error.message, code, undefined, undefined, error);
    }
  }

  async #send(statements: readonly InStatement[]): Promise<ResultRows[]> {
    const stream = this.#client.openStream();
    let last = null;
    const answers: Promise<ResultRows | undefined>[] = [];
    let done: Promise<void>;
    try {
      const batch = stream.batch(false);
      const begin = batch.step();
      answers.push(begin.run('BEGIN IMMEDIATE').then(() => undefined));
      last = begin;
      for (const statement of statements) {
        const step = batch.step().condition(BatchCond.ok(last));
        answers.push(step.query(toHrana(statement)));
        last = step;
      }
      const ended = batch.step().run('ROLLBACK');
      // there is nothing to roll back where nothing has begun
      ended.catch(() => {});
      done = batch.execute();
    } finally {
      stream.closeGracefully();
    }
    for (const answer of answers) answer.catch(() => {});
    await done;
    const found: ResultRows[] = [];
    for (const [at, answer] of answers.entries()) {
      const rows = await answer;
      if (at > 0) found.push(rows ?? { rows: [] });
    }
    return found;
  }

  close(): void {
    this.#client.close();
  }
}

function toHrana(statement: InStatement): Stmt {
  if (typeof statement === 'string') return new Stmt(statement);
  const stmt = new Stmt(statement.sql);
  if (Array.isArray(statement.args)) stmt.bindIndexes(statement.args);
  return stmt;
}
