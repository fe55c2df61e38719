import { loadTypescript } from './typescript.mjs';

/**
 * Opens the database once before serving, which migrates it and reports problems here in one line rather than in the
 * first request.
 *
 * @param {NodeJS.ProcessEnv} env
 */
export async function prepareDatabase(env) {
  const { databaseOptions, openDatabase } = await loadTypescript('db/client.ts', { alone: true });
  const database = await openDatabase({ ...databaseOptions(env), migrates: true });
  await database.close();
}
