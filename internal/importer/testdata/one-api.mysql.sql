/*M!999999\- enable the sandbox mode */ 
-- MariaDB dump 10.19  Distrib 10.11.19-MariaDB, for debian-linux-gnu (x86_64)
--
-- Host: localhost    Database: oneapi
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
  `key` text DEFAULT NULL,
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
  `group` varchar(32) DEFAULT 'default',
  `used_quota` bigint(20) DEFAULT 0,
  `model_mapping` varchar(1024) DEFAULT '',
  `priority` bigint(20) DEFAULT 0,
  `config` longtext DEFAULT NULL,
  `system_prompt` text DEFAULT NULL,
  PRIMARY KEY (`id`),
  KEY `idx_channels_name` (`name`)
) ENGINE=InnoDB AUTO_INCREMENT=8 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Dumping data for table `channels`
--

LOCK TABLES `channels` WRITE;
/*!40000 ALTER TABLE `channels` DISABLE KEYS */;
INSERT INTO `channels` VALUES
(1,1,'sk-upstream-main-7d2f',1,'OpenAI main',3,1795495287,0,0,'http://upstream.example','',0,0,'gpt-4o,gpt-4o-mini,odd model,text-embedding-3-small','default,vip',94,'',10,'',NULL),
(2,1,'sk-upstream-backup-91aa',1,'OpenAI backup',0,1795495287,0,0,'http://upstream.example','',0,0,'gpt-4o,smart','default',0,'{\"smart\": \"gpt-4o-2024-11-20\"}',0,'',NULL),
(3,14,'sk-ant-upstream-3c',1,'Anthropic',0,1795495287,0,0,'http://upstream.example','',0,0,'claude-3-5-sonnet','vip',0,'',0,'',NULL),
(4,36,'sk-deepseek-5e',1,'深度求索',0,1795495287,0,0,'http://upstream.example','',0,0,'deepseek-chat','default,vip',0,'',5,'',NULL),
(5,15,'abc|def',1,'Baidu',0,1795495287,0,0,'http://upstream.example','',0,0,'ERNIE-4.0-8K','default,vip',0,'',0,'',NULL),
(6,1,'sk-upstream-images',1,'images',0,1795495287,0,0,'http://upstream.example','',0,0,'dall-e-3','default,vip',0,'',0,'',NULL),
(7,1,'sk-upstream-off',2,'switched off',0,1795495287,0,0,'http://upstream.example','',0,0,'o1','default,vip',0,'',0,'',NULL);
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
  `wechat_id` varchar(191) DEFAULT NULL,
  `lark_id` varchar(191) DEFAULT NULL,
  `oidc_id` varchar(191) DEFAULT NULL,
  `access_token` char(32) DEFAULT NULL,
  `quota` bigint(20) DEFAULT 0,
  `used_quota` bigint(20) DEFAULT 0,
  `request_count` bigint(20) DEFAULT 0,
  `group` varchar(32) DEFAULT 'default',
  `aff_code` varchar(32) DEFAULT NULL,
  `inviter_id` bigint(20) DEFAULT NULL,
  PRIMARY KEY (`id`),
  UNIQUE KEY `idx_users_access_token` (`access_token`),
  UNIQUE KEY `idx_users_aff_code` (`aff_code`),
  UNIQUE KEY `uni_users_username` (`username`),
  KEY `idx_users_display_name` (`display_name`),
  KEY `idx_users_email` (`email`),
  KEY `idx_users_we_chat_id` (`wechat_id`),
  KEY `idx_users_oidc_id` (`oidc_id`),
  KEY `idx_users_username` (`username`),
  KEY `idx_users_git_hub_id` (`github_id`),
  KEY `idx_users_lark_id` (`lark_id`),
  KEY `idx_users_inviter_id` (`inviter_id`)
) ENGINE=InnoDB AUTO_INCREMENT=7 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Dumping data for table `users`
--

LOCK TABLES `users` WRITE;
/*!40000 ALTER TABLE `users` DISABLE KEYS */;
INSERT INTO `users` VALUES
(1,'root','$2a$10$D1p.xjYFdtaEm444c0vlp.R042Vd/jJHCPOG6p7jIjwq5h9ADkcqG','Root User',100,1,'','','','','','3ec0d801db3343df9aafdd45f9769e0e',500000000000000,0,0,'default','',0),
(2,'alice','$2a$10$AXKM2lgmXDmJjEMiJhEaHu09vU3Bf4gTcwTA7hbNPOpLOiXZRIfXe','Alice',1,1,'alice@example.com','','','','','31bce2c3fe444498b93a1d55637572fd',4999909,94,2,'default','52yE',0),
(3,'bob','$2a$10$F6/7JGiko5Y7G4YAH.nh8.OKE33OHFx1ZK5.UUpUMr6itefAd3XJO','Bob',1,1,'','','','','','59fbc64b75eb4083bb6c0fc5facd00e2',12345678,0,0,'vip','8q2h',0),
(4,'carol','$2a$10$Hd64Mtv/40w7VY15CjbATuwT2dZ/wiwt/iCR0cp0yVKvVHkP4FFdG','Carol',1,2,'carol@example.com','','','','','0e55e5f07a7a47769e7cb7dad9736d97',250000,0,0,'default','a93L',0),
(5,'dave','$2a$10$ZkwaSdAUF3mKwjZCTFOkDeUU.GEeIB8.yzpVP.dhbmLFrMmk9CcZu','Dave',1,1,'','','','','','46083681ff2149f298b033028670fb4d',0,0,0,'svip','Qmsk',0),
(6,'deleted_6ebdf636ad014afbad110cd97578649f','$2a$10$3hlCFfa2Q5VRMDrb9PcpLuzS4bBKJT5jTeoO1bOtxplFL1JBJtSZq','Erin',1,3,'','','','','','27a5d1310016401e8bf51f2943d8b7fc',0,0,0,'default','tc1C',0);
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
  `used_quota` bigint(20) DEFAULT 0,
  `models` text DEFAULT NULL,
  `subnet` varchar(191) DEFAULT '',
  PRIMARY KEY (`id`),
  UNIQUE KEY `idx_tokens_key` (`key`),
  KEY `idx_tokens_name` (`name`)
) ENGINE=InnoDB AUTO_INCREMENT=14 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Dumping data for table `tokens`
--

LOCK TABLES `tokens` WRITE;
/*!40000 ALTER TABLE `tokens` DISABLE KEYS */;
INSERT INTO `tokens` VALUES
(1,2,'fstKq1km0L6kgwb142178b5617764249810fAe174180298c',1,'default',1795495287,1795495287,-1,-1,1,0,NULL,''),
(2,3,'cWBZrHN7GIB1FV0kD49e98729bE240F58aA29714F878Df01',1,'default',1795495287,1795495287,-1,-1,1,0,NULL,''),
(3,4,'X1fRIZG1Sa1d40Jk1eF6D62848D44aF5Aa2741244b74119f',1,'default',1795495287,1795495287,-1,-1,1,0,NULL,''),
(4,5,'gVGRvBrNVl1rqvbm95A71f0960A24b58Bc660cBdA864E177',1,'default',1795495287,1795495287,-1,-1,1,0,NULL,''),
(5,6,'9zW0LBXSMuFmPHNED4Ff9642330a434884646372268bFdCd',1,'default',1795495287,1795495287,-1,-1,1,0,NULL,''),
(6,2,'1ms9bIyXhoTbAV8bB9108047FcCe42388d60B02bBd1b63Ff',1,'laptop',1795495287,1795495287,-1,0,1,0,NULL,''),
(7,2,'gUISswzmJVbsnZkTE54862672aC14fC4B98eF552E04d07D8',1,'ci',1795495287,1795495287,-1,999953,0,47,'gpt-4o,gpt-4o-mini',''),
(8,2,'oC7VV7UBFILODrh04c4884E693Dd412a998d210c087547E6',1,'old',1795495287,1795495287,1795495289,0,1,0,NULL,''),
(9,2,'aGMxrPV92n6nkz1A5a0b4f52E7De470d96F54d0aAa002d90',1,'later',1795495287,1795495287,1893456000,0,1,0,NULL,''),
(10,3,'gj2PjekTWlsktdIL83Ce190a312745Bf976bBc41DbAe392a',1,'office',1795495287,1795495287,-1,0,1,0,NULL,'192.0.2.0/24'),
(11,3,'SudC5K6mbg7zakoj65A6301c33414dD29eAeF54525E6BdC9',1,'spent',1795495287,1795495287,-1,0,0,0,NULL,''),
(12,3,'cAkgbaEcHjUuFSk4A85cE0A94d0645Bb9c7d010044Aa2d1c',2,'paused',1795495287,1795495287,-1,0,1,0,NULL,''),
(13,4,'2gLO86dyxFuhgY5NB2Ea1e9bC1Fe4a519227Ae3aB5412cE1',1,'carols',1795495287,1795495287,-1,0,1,0,NULL,'');
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
INSERT INTO `options` VALUES
('CompletionRatio','{\"deepseek-chat\": 4.074074074, \"gpt-4o\": 4}'),
('GroupRatio','{\"default\": 1, \"vip\": 0.8, \"svip\": 0.5}'),
('ModelRatio','{\"gpt-4o\": 1.25, \"gpt-4o-mini\": 0.075, \"claude-3-5-sonnet\": 1.5, \"deepseek-chat\": 0.135, \"o1\": 7.5, \"text-embedding-3-small\": 0.01, \"dall-e-3\": 20, \"odd model\": 1, \"smart\": 1.25}');
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
  PRIMARY KEY (`id`),
  UNIQUE KEY `idx_redemptions_key` (`key`),
  KEY `idx_redemptions_name` (`name`)
) ENGINE=InnoDB AUTO_INCREMENT=3 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Dumping data for table `redemptions`
--

LOCK TABLES `redemptions` WRITE;
/*!40000 ALTER TABLE `redemptions` DISABLE KEYS */;
INSERT INTO `redemptions` VALUES
(1,1,'0bdaebce750d4c21b8accb0e2fe79fe5',1,'gift',500000,1795495287,0),
(2,1,'11b7222938344bc1bde8cc6aa5628322',1,'gift',500000,1795495287,0);
/*!40000 ALTER TABLE `redemptions` ENABLE KEYS */;
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
