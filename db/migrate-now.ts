import { checkContext, contextKind, databaseOptions, openDatabase } from './client';

/**
 * `npm run db:migrate`: migrates the database that the environment names. `npm start` migrates by itself; this command
 * is for platforms that only build, and for a libSQL server shared by several instances.
 */
try {
  checkContext(process.env, contextKind(process.env));
  const database = await openDatabase({ ...databaseOptions(process.env), migrates: true });
  await database.close();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
