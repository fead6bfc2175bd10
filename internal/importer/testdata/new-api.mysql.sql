/*M!999999\- enable the sandbox mode */ 
-- MariaDB dump 10.19  Distrib 10.11.19-MariaDB, for debian-linux-gnu (x86_64)
--
-- Host: localhost    Database: newapi
-- ------------------------------------------------------
-- Server version	10.11.19-MariaDB-0+deb12u1

/*!40101 SET @OLD_CHARACTER_SET_CLIENT=@@CHARACTER_SET_CLIENT */;
/*!40101 SET @OLD_CHARACTER_SET_RESULTS=@@CHARACTER_SET_RESULTS */;
/*!40101 SET @OLD_COLLATION_CONNECTION=@@COLLATION_CONNECTION */;
/*!40101 SET NAMES utf8mb4 */;
/*!40103 SET @OLD_TIME_ZONE=@@TIME_ZONE */;
/*!40103 SET TIME_ZONE='+00:00' */;
/*!40014 SET @OLD_UNIQUE_CHECKS=@@UNIQUE_CHECKS, UNIQUE_CHECKS=0 */;
/*!40014 SET @OLD_FOREIGN_KEY_CHECKS=@@FOREIGN_KEY_CHECKS, FOREIGN_KEY_CHECKS=0 */;
/*!40101 SET @OLD_SQL_MODE=@@SQL_MODE, SQL_MODE='NO_AUTO_VALUE_ON_ZERO' */;
/*!40111 SET @OLD_SQL_NOTES=@@SQL_NOTES, SQL_NOTES=0 */;

--
-- Table structure for table `channels`
--

DROP TABLE IF EXISTS `channels`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `channels` (
  `id` bigint(20) NOT NULL AUTO_INCREMENT,
  `type` bigint(20) DEFAULT 0,
  `key` longtext NOT NULL,
  `open_ai_organization` longtext DEFAULT NULL,
  `test_model` longtext DEFAULT NULL,
  `status` bigint(20) DEFAULT 1,
  `name` varchar(191) DEFAULT NULL,
  `weight` bigint(20) unsigned DEFAULT 0,
  `created_time` bigint(20) DEFAULT NULL,
  `test_time` bigint(20) DEFAULT NULL,
  `response_time` bigint(20) DEFAULT NULL,
  `base_url` varchar(191) DEFAULT '',
  `other` longtext DEFAULT NULL,
  `balance` double DEFAULT NULL,
  `balance_updated_time` bigint(20) DEFAULT NULL,
  `models` longtext DEFAULT NULL,
  `group` varchar(64) DEFAULT 'default',
  `used_quota` bigint(20) DEFAULT 0,
  `model_mapping` text DEFAULT NULL,
  `status_code_mapping` varchar(1024) DEFAULT '',
  `priority` bigint(20) DEFAULT 0,
  `auto_ban` bigint(20) DEFAULT 1,
  `other_info` longtext DEFAULT NULL,
  `tag` varchar(191) DEFAULT NULL,
  `setting` text DEFAULT NULL,
  `param_override` text DEFAULT NULL,
  PRIMARY KEY (`id`),
  KEY `idx_channels_name` (`name`),
  KEY `idx_channels_tag` (`tag`)
) ENGINE=InnoDB AUTO_INCREMENT=9 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Dumping data for table `channels`
--

LOCK TABLES `channels` WRITE;
/*!40000 ALTER TABLE `channels` DISABLE KEYS */;
INSERT INTO `channels` (`id`, `type`, `key`, `open_ai_organization`, `test_model`, `status`, `name`, `weight`, `created_time`, `test_time`, `response_time`, `base_url`, `other`, `balance`, `balance_updated_time`, `models`, `group`, `used_quota`, `model_mapping`, `status_code_mapping`, `priority`, `auto_ban`, `other_info`, `tag`, `setting`, `param_override`) VALUES (1,1,'sk-upstream-main-7d2f',NULL,NULL,1,'OpenAI main',3,1795495291,0,0,'http://upstream.example','',0,0,'gpt-4o,gpt-4o-mini,odd model,text-embedding-3-small','default,vip',92,'','',10,1,'',NULL,NULL,NULL),
(2,1,'sk-upstream-backup-91aa',NULL,NULL,1,'OpenAI backup',0,1795495291,0,0,'http://upstream.example','',0,0,'gpt-4o,smart','default',0,'{\"smart\": \"gpt-4o-2024-11-20\"}','',0,1,'',NULL,NULL,NULL),
(3,14,'sk-ant-upstream-3c',NULL,NULL,1,'Anthropic',0,1795495291,0,0,'http://upstream.example','',0,0,'claude-3-5-sonnet','vip',0,'','',0,1,'',NULL,NULL,NULL),
(4,43,'sk-deepseek-5e',NULL,NULL,1,'深度求索',0,1795495291,0,0,'http://upstream.example','',0,0,'deepseek-chat','default,vip',0,'','',5,1,'',NULL,NULL,NULL),
(5,15,'abc|def',NULL,NULL,1,'Baidu',0,1795495291,0,0,'http://upstream.example','',0,0,'ERNIE-4.0-8K','default,vip',0,'','',0,1,'',NULL,NULL,NULL),
(6,1,'sk-upstream-images',NULL,NULL,1,'images',0,1795495291,0,0,'http://upstream.example','',0,0,'dall-e-3','default,vip',0,'','',0,1,'',NULL,NULL,NULL),
(7,1,'sk-upstream-off',NULL,NULL,2,'switched off',0,1795495291,0,0,'http://upstream.example','',0,0,'o1','default,vip',0,'','',0,1,'',NULL,NULL,NULL),
(8,1,'sk-upstream-flat','org-42',NULL,1,'flat',0,1795495291,0,0,'http://upstream.example','',0,0,'flat-chat','default,vip',0,'','',0,1,'',NULL,NULL,NULL);
/*!40000 ALTER TABLE `channels` ENABLE KEYS */;
UNLOCK TABLES;

--
-- Table structure for table `users`
--

DROP TABLE IF EXISTS `users`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `users` (
  `id` bigint(20) NOT NULL AUTO_INCREMENT,
  `username` varchar(191) DEFAULT NULL,
  `password` longtext NOT NULL,
  `display_name` varchar(191) DEFAULT NULL,
  `role` bigint(20) DEFAULT 1,
  `status` bigint(20) DEFAULT 1,
  `email` varchar(191) DEFAULT NULL,
  `github_id` varchar(191) DEFAULT NULL,
  `oidc_id` varchar(191) DEFAULT NULL,
  `wechat_id` varchar(191) DEFAULT NULL,
  `telegram_id` varchar(191) DEFAULT NULL,
  `access_token` char(32) DEFAULT NULL,
  `quota` bigint(20) DEFAULT 0,
  `used_quota` bigint(20) DEFAULT 0,
  `request_count` bigint(20) DEFAULT 0,
  `group` varchar(64) DEFAULT 'default',
  `aff_code` varchar(32) DEFAULT NULL,
  `aff_count` bigint(20) DEFAULT 0,
  `aff_quota` bigint(20) DEFAULT 0,
  `aff_history` bigint(20) DEFAULT 0,
  `inviter_id` bigint(20) DEFAULT NULL,
  `deleted_at` datetime(3) DEFAULT NULL,
  `linux_do_id` varchar(191) DEFAULT NULL,
  `setting` text DEFAULT NULL,
  PRIMARY KEY (`id`),
  UNIQUE KEY `username` (`username`),
  UNIQUE KEY `idx_users_access_token` (`access_token`),
  UNIQUE KEY `idx_users_aff_code` (`aff_code`),
  KEY `idx_users_inviter_id` (`inviter_id`),
  KEY `idx_users_deleted_at` (`deleted_at`),
  KEY `idx_users_linux_do_id` (`linux_do_id`),
  KEY `idx_users_username` (`username`),
  KEY `idx_users_display_name` (`display_name`),
  KEY `idx_users_email` (`email`),
  KEY `idx_users_git_hub_id` (`github_id`),
  KEY `idx_users_oidc_id` (`oidc_id`),
  KEY `idx_users_we_chat_id` (`wechat_id`),
  KEY `idx_users_telegram_id` (`telegram_id`)
) ENGINE=InnoDB AUTO_INCREMENT=7 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Dumping data for table `users`
--

LOCK TABLES `users` WRITE;
/*!40000 ALTER TABLE `users` DISABLE KEYS */;
INSERT INTO `users` (`id`, `username`, `password`, `display_name`, `role`, `status`, `email`, `github_id`, `oidc_id`, `wechat_id`, `telegram_id`, `access_token`, `quota`, `used_quota`, `request_count`, `group`, `aff_code`, `aff_count`, `aff_quota`, `aff_history`, `inviter_id`, `deleted_at`, `linux_do_id`, `setting`) VALUES (1,'root','$2a$10$WMW7uwWnMwUSYu7r/gJzjOd/8w/yR/BoV2RO0YpC0ExxWZnNUGPI.','Root User',100,1,'','','','','',NULL,100000000,0,0,'default','',0,0,0,0,NULL,'',''),
(2,'alice','$2a$10$l7dWhYnE6EXPXHQdJ7HfKOCcKqJfdkodjv6D3.4e21oEa9tkxQg6e','Alice',1,1,'','','','','',NULL,4999911,92,2,'default','4SCA',0,0,0,0,NULL,'',''),
(3,'bob','$2a$10$6vdUpLBzVOHMLiLn3xH/xOyYxCiZ22xXlEGa/J/SxzGeCkV69EgbC','Bob',1,1,'','','','','',NULL,12345678,0,0,'vip','e6p7',0,0,0,0,NULL,'',''),
(4,'carol','$2a$10$8yb0fuxl1fxGLGCXGJvEGuuVdeqbzO3M7ha63rtuwgz6JVpN.Ghse','Carol',1,2,'','','','','',NULL,250000,0,0,'default','3AK6',0,0,0,0,NULL,'',''),
(5,'dave','$2a$10$NnoljrkOztvaskIuZX62gOrGcXlDjzBLukq.rjyMH/z8UI6YO7udq','Dave',1,1,'','','','','',NULL,0,0,0,'svip','SC7h',0,0,0,0,NULL,'',''),
(6,'erin','$2a$10$c49690.iguOJrdwn6xeILeu7m7vlBrEw1K6wepeV7eR.mSETu/HIa','Erin',1,1,'','','','','',NULL,0,0,0,'default','aDq1',0,0,0,0,'2026-11-24 04:41:31.825','','');
/*!40000 ALTER TABLE `users` ENABLE KEYS */;
UNLOCK TABLES;

--
-- Table structure for table `tokens`
--

DROP TABLE IF EXISTS `tokens`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `tokens` (
  `id` bigint(20) NOT NULL AUTO_INCREMENT,
  `user_id` bigint(20) DEFAULT NULL,
  `key` char(48) DEFAULT NULL,
  `status` bigint(20) DEFAULT 1,
  `name` varchar(191) DEFAULT NULL,
  `created_time` bigint(20) DEFAULT NULL,
  `accessed_time` bigint(20) DEFAULT NULL,
  `expired_time` bigint(20) DEFAULT -1,
  `remain_quota` bigint(20) DEFAULT 0,
  `unlimited_quota` tinyint(1) DEFAULT 0,
  `model_limits_enabled` tinyint(1) DEFAULT 0,
  `model_limits` varchar(1024) DEFAULT '',
  `allow_ips` varchar(191) DEFAULT '',
  `used_quota` bigint(20) DEFAULT 0,
  `group` varchar(191) DEFAULT '',
  `deleted_at` datetime(3) DEFAULT NULL,
  PRIMARY KEY (`id`),
  UNIQUE KEY `idx_tokens_key` (`key`),
  KEY `idx_tokens_user_id` (`user_id`),
  KEY `idx_tokens_name` (`name`),
  KEY `idx_tokens_deleted_at` (`deleted_at`)
) ENGINE=InnoDB AUTO_INCREMENT=10 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Dumping data for table `tokens`
--

LOCK TABLES `tokens` WRITE;
/*!40000 ALTER TABLE `tokens` DISABLE KEYS */;
INSERT INTO `tokens` (`id`, `user_id`, `key`, `status`, `name`, `created_time`, `accessed_time`, `expired_time`, `remain_quota`, `unlimited_quota`, `model_limits_enabled`, `model_limits`, `allow_ips`, `used_quota`, `group`, `deleted_at`) VALUES (1,2,'MtCqqLXtecifIv4W5mbgr7QkPEw0xsyBVXVoD0RN0V9Wk61H',1,'laptop',1795495291,1795495291,-1,-46,1,0,'','',46,'',NULL),
(2,2,'ilGIoUsYq6AlpfiMCCq9hfc8NfKn8MuGZThbfTPU5MVaxOQd',1,'ci',1795495291,1795495291,-1,999954,0,1,'gpt-4o,gpt-4o-mini','',46,'',NULL),
(3,2,'Faih2hV2K2ldPClU7HdV7rMhr2BLk8cg9vs9E8KOJaZoryFa',1,'old',1795495291,1795495291,1795495293,0,1,0,'','',0,'',NULL),
(4,2,'qN3Y4YkfW7tACKiZ8q6Zy1ihYDznPjHlcjo6t615ShpMV3Fx',1,'later',1795495291,1795495291,1893456000,0,1,0,'','',0,'',NULL),
(5,3,'KgYVk4Uiv85t08r2h602s036x5K2nR5cZ2zpk6IfgpEMLDOF',1,'office',1795495291,1795495291,-1,0,1,0,'','192.0.2.7\n198.51.100.9',0,'',NULL),
(6,3,'y4haFaCdpB3oNBnDodhzuqA2fL2wZQ0caUZ6vVb2fMXO2URa',1,'spent',1795495291,1795495291,-1,0,0,0,'','',0,'',NULL),
(7,3,'TgxX9jQh9XSsHeYE6YYsHTAQLZRSQmpzE62iSLinwe34b6CF',2,'paused',1795495291,1795495291,-1,0,1,0,'','',0,'',NULL),
(8,3,'MpXQZYWmLObMHTpNxynffvxdYRLEeBqmIOAMiTsSeaTRvlit',1,'cheap',1795495291,1795495291,-1,0,1,0,'','',0,'default',NULL),
(9,4,'Y2kwoI0YjrkFZIlYRwlW1H7meyEjmnOGmIL173ndTXgsZSV3',1,'carols',1795495291,1795495291,-1,0,1,0,'','',0,'',NULL);
/*!40000 ALTER TABLE `tokens` ENABLE KEYS */;
UNLOCK TABLES;

--
-- Table structure for table `options`
--

DROP TABLE IF EXISTS `options`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `options` (
  `key` varchar(191) NOT NULL,
  `value` longtext DEFAULT NULL,
  PRIMARY KEY (`key`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Dumping data for table `options`
--

LOCK TABLES `options` WRITE;
/*!40000 ALTER TABLE `options` DISABLE KEYS */;
INSERT INTO `options` (`key`, `value`) VALUES ('CacheRatio','{\"gpt-4o\": 0.5, \"claude-3-5-sonnet\": 0.1}'),
('CompletionRatio','{\"deepseek-chat\": 4.074074074, \"gpt-4o\": 4}'),
('DemoSiteEnabled','false'),
('GroupRatio','{\"default\": 1, \"vip\": 0.8, \"svip\": 0.5}'),
('ModelPrice','{\"flat-chat\": 0.02, \"dall-e-3\": 0.04}'),
('ModelRatio','{\"gpt-4o\": 1.25, \"gpt-4o-mini\": 0.075, \"claude-3-5-sonnet\": 1.5, \"deepseek-chat\": 0.135, \"o1\": 7.5, \"text-embedding-3-small\": 0.01, \"dall-e-3\": 20, \"odd model\": 1, \"smart\": 1.25}'),
('SelfUseModeEnabled','false');
/*!40000 ALTER TABLE `options` ENABLE KEYS */;
UNLOCK TABLES;

--
-- Table structure for table `redemptions`
--

DROP TABLE IF EXISTS `redemptions`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `redemptions` (
  `id` bigint(20) NOT NULL AUTO_INCREMENT,
  `user_id` bigint(20) DEFAULT NULL,
  `key` char(32) DEFAULT NULL,
  `status` bigint(20) DEFAULT 1,
  `name` varchar(191) DEFAULT NULL,
  `quota` bigint(20) DEFAULT 100,
  `created_time` bigint(20) DEFAULT NULL,
  `redeemed_time` bigint(20) DEFAULT NULL,
  `used_user_id` bigint(20) DEFAULT NULL,
  `deleted_at` datetime(3) DEFAULT NULL,
  PRIMARY KEY (`id`),
  UNIQUE KEY `idx_redemptions_key` (`key`),
  KEY `idx_redemptions_name` (`name`),
  KEY `idx_redemptions_deleted_at` (`deleted_at`)
) ENGINE=InnoDB AUTO_INCREMENT=3 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Dumping data for table `redemptions`
--

LOCK TABLES `redemptions` WRITE;
/*!40000 ALTER TABLE `redemptions` DISABLE KEYS */;
INSERT INTO `redemptions` (`id`, `user_id`, `key`, `status`, `name`, `quota`, `created_time`, `redeemed_time`, `used_user_id`, `deleted_at`) VALUES (1,1,'6e3ace05fab2473bb5f2c72079571aeb',1,'gift',500000,1795495291,0,0,NULL),
(2,1,'050d822775b546848eb6bf5b3e602a6b',1,'gift',500000,1795495291,0,0,NULL);
/*!40000 ALTER TABLE `redemptions` ENABLE KEYS */;
UNLOCK TABLES;

--
-- Table structure for table `logs`
--

DROP TABLE IF EXISTS `logs`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `logs` (
  `id` bigint(20) NOT NULL AUTO_INCREMENT,
  `user_id` bigint(20) DEFAULT NULL,
  `created_at` bigint(20) DEFAULT NULL,
  `type` bigint(20) DEFAULT NULL,
  `content` longtext DEFAULT NULL,
  `username` varchar(191) DEFAULT '',
  `token_name` varchar(191) DEFAULT '',
  `model_name` varchar(191) DEFAULT '',
  `quota` bigint(20) DEFAULT 0,
  `prompt_tokens` bigint(20) DEFAULT 0,
  `completion_tokens` bigint(20) DEFAULT 0,
  `use_time` bigint(20) DEFAULT 0,
  `is_stream` tinyint(1) DEFAULT 0,
  `channel_id` bigint(20) DEFAULT NULL,
  `channel_name` longtext DEFAULT NULL,
  `token_id` bigint(20) DEFAULT 0,
  `group` varchar(191) DEFAULT NULL,
  `other` longtext DEFAULT NULL,
  PRIMARY KEY (`id`),
  KEY `idx_created_at_type` (`created_at`,`type`),
  KEY `idx_logs_token_name` (`token_name`),
  KEY `idx_logs_channel_id` (`channel_id`),
  KEY `idx_created_at_id` (`id`,`created_at`),
  KEY `idx_logs_user_id` (`user_id`),
  KEY `idx_logs_username` (`username`),
  KEY `index_username_model_name` (`model_name`,`username`),
  KEY `idx_logs_model_name` (`model_name`),
  KEY `idx_logs_token_id` (`token_id`),
  KEY `idx_logs_group` (`group`)
) ENGINE=InnoDB AUTO_INCREMENT=6 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Dumping data for table `logs`
--

LOCK TABLES `logs` WRITE;
/*!40000 ALTER TABLE `logs` DISABLE KEYS */;
INSERT INTO `logs` (`id`, `user_id`, `created_at`, `type`, `content`, `username`, `token_name`, `model_name`, `quota`, `prompt_tokens`, `completion_tokens`, `use_time`, `is_stream`, `channel_id`, `channel_name`, `token_id`, `group`, `other`) VALUES (1,2,1795495291,3,'管理员将用户额度从 ＄0.000000 额度修改为 ＄10.000006 额度','alice','','',0,0,0,0,0,0,NULL,0,'',''),
(2,3,1795495291,3,'管理员将用户额度从 ＄0.000000 额度修改为 ＄24.691356 额度','bob','','',0,0,0,0,0,0,NULL,0,'',''),
(3,4,1795495291,3,'管理员将用户额度从 ＄0.000000 额度修改为 ＄0.500000 额度','carol','','',0,0,0,0,0,0,NULL,0,'',''),
(4,2,1795495291,2,'模型倍率 1.25，补全倍率 4.00，分组倍率 1.00','alice','ci','gpt-4o',46,17,5,0,0,1,NULL,2,'default','{\"admin_info\":{\"use_channel\":[\"1\"]},\"cache_ratio\":0.5,\"cache_tokens\":0,\"completion_ratio\":4,\"frt\":-1000,\"group_ratio\":1,\"model_price\":-1,\"model_ratio\":1.25}'),
(5,2,1795495291,2,'模型倍率 1.25，补全倍率 4.00，分组倍率 1.00','alice','laptop','gpt-4o',46,17,5,0,0,1,NULL,1,'default','{\"admin_info\":{\"use_channel\":[\"1\"]},\"cache_ratio\":0.5,\"cache_tokens\":0,\"completion_ratio\":4,\"frt\":-1000,\"group_ratio\":1,\"model_price\":-1,\"model_ratio\":1.25}');
/*!40000 ALTER TABLE `logs` ENABLE KEYS */;
UNLOCK TABLES;
/*!40103 SET TIME_ZONE=@OLD_TIME_ZONE */;

/*!40101 SET SQL_MODE=@OLD_SQL_MODE */;
/*!40014 SET FOREIGN_KEY_CHECKS=@OLD_FOREIGN_KEY_CHECKS */;
/*!40014 SET UNIQUE_CHECKS=@OLD_UNIQUE_CHECKS */;
/*!40101 SET CHARACTER_SET_CLIENT=@OLD_CHARACTER_SET_CLIENT */;
/*!40101 SET CHARACTER_SET_RESULTS=@OLD_CHARACTER_SET_RESULTS */;
/*!40101 SET COLLATION_CONNECTION=@OLD_COLLATION_CONNECTION */;
/*!40111 SET SQL_NOTES=@OLD_SQL_NOTES */;

-- Dump completed on 2026-11-24  4:41:34
