import { execFileSync } from 'node:child_process';
import { createRequire } from 'node:module';

const driver = createRequire(import.meta.url).resolve('libsql');
const VISIT = `
  const Database = require(process.argv[1]);
  const visitor = new Database(process.argv[2]);
  visitor.prepare('SELECT count(*) FROM sqlite_master').all();
  visitor.close();
`;

/**
 * Another program reads a database file and closes it again. If it thinks itself the last one to use the file, SQLite
 * takes the log away: whoever has it open, but no lock on it any more, loses it.
 */
export function visitDatabase(path: string): void {
  execFileSync(process.execPath, ['-e', VISIT, driver, path]);
}
