import { loadTypescript } from './typescript.mjs';

/**
 * Opens the database once before serving, which brings its schema up to date: what is wrong with it is then told here,
 * in one line, and not by the first request.
 *
 * @param {NodeJS.ProcessEnv} env
 */
export async function prepareDatabase(env) {
  const { databaseOptions, openDatabase } = await loadTypescript('db/client.ts', { alone: true });
  const database = await openDatabase({ ...databaseOptions(env), migrates: true });
  await database.close();
}
