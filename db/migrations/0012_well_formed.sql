-- A time that no Date can hold is none: the runner that said it could not be listened to again.
-- What half surrogate pairs stand in the JSON of older rows mend-halves.ts takes out, after this file.
UPDATE `runners` SET `started_at` = 8640000000000000 WHERE `started_at` > 8640000000000000;
