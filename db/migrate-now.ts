import { checkContext, contextKind, databaseOptions, openDatabase } from './client';

/**
 * `npm run db:migrate`: brings the database that the environment names up to date and exits. `npm start` does the same
 * by itself; this is for hosts that only build and never start, and for a libSQL server that several of them share.
 */
try {
  checkContext(process.env, contextKind(process.env));
  const database = await openDatabase({ ...databaseOptions(process.env), migrates: true });
  await database.close();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
