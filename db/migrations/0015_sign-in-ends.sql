ALTER TABLE `credentials` ADD `refresh_token` text;--> statement-breakpoint
ALTER TABLE `credentials` ADD `role_checked_at` integer;--> statement-breakpoint
ALTER TABLE `credentials` ADD `role_due_at` integer;--> statement-breakpoint
UPDATE `credentials` SET `expires_at` = `created_at` + CASE WHEN `member_id` IS NULL THEN 2592000000 ELSE 43200000 END WHERE `kind` = 'session' AND `expires_at` IS NULL;--> statement-breakpoint
WITH RECURSIVE `ends` (`id`, `kind`, `expires_at`, `revoked_at`) AS (
	SELECT `id`, `kind`, `expires_at`, `revoked_at` FROM `credentials` WHERE `parent_id` IS NULL OR `parent_id` NOT IN (SELECT `id` FROM `credentials`) OR (`kind` = 'token' AND `parent_id` IN (SELECT `id` FROM `credentials` WHERE `kind` = 'session'))
	UNION ALL SELECT `made`.`id`, `made`.`kind`,
		min(ifnull(`made`.`expires_at`, `ends`.`expires_at`), ifnull(`ends`.`expires_at`, `made`.`expires_at`)),
		ifnull(`made`.`revoked_at`, `ends`.`revoked_at`)
	FROM `credentials` AS `made` JOIN `ends` ON `made`.`parent_id` = `ends`.`id` WHERE `made`.`kind` <> 'token' OR `ends`.`kind` <> 'session'
)
UPDATE `credentials` SET `expires_at` = `ends`.`expires_at`, `revoked_at` = `ends`.`revoked_at` FROM `ends` WHERE `ends`.`id` = `credentials`.`id`;--> statement-breakpoint
UPDATE `inbox` SET `claim` = NULL;--> statement-breakpoint
UPDATE `access` SET `version` = `version` + 1;
