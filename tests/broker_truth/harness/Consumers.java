import java.nio.charset.StandardCharsets;
import java.util.*;
import java.util.concurrent.*;
import org.apache.rocketmq.client.consumer.*;
import org.apache.rocketmq.client.consumer.listener.*;
import org.apache.rocketmq.client.producer.*;
import org.apache.rocketmq.common.message.*;
import org.apache.rocketmq.remoting.netty.*;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;

/**
 * Clients of a broker that fill each of its tables: consumers that are pushed to and that pull, with tags, SQL, in order, with
 * retries, and from 5.0 on by pop; delayed messages, a transaction, requests of an administrator.
 * The line printed that begins with a brace is what each group consumed, as JSON: group -> topic -> queue -> the offset behind its last message.
 * Arguments: the name server; "pop" from 5.0 on; "lmq" for a broker with light queues.
 */
public class Consumers {
    private static final String BROKER = "127.0.0.1:10911";
    private static final int MESSAGES = 40;
    private static final Map<String, Map<String, Map<Integer, Long>>> CONSUMED = new ConcurrentSkipListMap<>();
    private static final Map<String, Integer> COUNTS = new ConcurrentHashMap<>();
    private static final List<DefaultMQPushConsumer> PUSHED = new ArrayList<>();
    private static String names;
    private static NettyRemotingClient remoting;

    public static void main(String[] args) throws Exception {
        names = args[0];
        boolean pops = args[1].equals("pop");
        boolean light = args[2].equals("lmq");
        remoting = new NettyRemotingClient(new NettyClientConfig());
        remoting.start();
        topic("Orders", 4, "");
        topic("Ordered", 2, pops ? "+message.type=FIFO" : "");
        topic("Later", 2, pops ? "+message.type=DELAY" : "");
        topic("Paid", 1, pops ? "+message.type=TRANSACTION" : "");
        group("{\"groupName\":\"slow\",\"consumeEnable\":false,\"retryMaxTimes\":3,\"retryQueueNums\":2"
            + (pops ? ",\"groupRetryPolicy\":{\"type\":\"EXPONENTIAL\",\"exponentialRetryPolicy\":{\"initial\":1000,\"max\":60000,\"multiplier\":2}}"
            + ",\"subscriptionDataSet\":[{\"topic\":\"Orders\",\"expressionType\":\"TAG\",\"expression\":\"A\",\"version\":1}]" : "") + "}");
        group("{\"groupName\":\"steps\"" + (pops ? ",\"consumeMessageOrderly\":true,\"groupRetryPolicy\":{\"type\":\"CUSTOMIZED\",\"customizedRetryPolicy\":{\"next\":[1000,5000]}}" : "") + "}");
        if (pops) {
            request(353, map("group", "slow", "topic", "Orders", "readable", "false"), "");
            request(513, map("topic", "Mapped", "defaultTopic", "TBW102", "readQueueNums", "2", "writeQueueNums", "2", "perm", "6",
                "topicFilterType", "SINGLE_TAG", "topicSysFlag", "0", "order", "false"),
                "{\"topic\":\"Mapped\",\"bname\":\"broker-a\",\"totalQueues\":2,\"epoch\":1,\"scope\":\"__global__\",\"hostedQueues\":"
                + "{\"0\":[" + mapped(0) + "],\"1\":[" + mapped(1) + "]}}");
            request(401, map(), "{\"topic\":\"Orders\",\"consumerGroup\":\"popped\",\"mode\":\"POP\",\"popShareQueueNum\":0}");
        }
        push("pushed", "Orders", MessageSelector.byTag("*"), false, false);
        push("tagged", "Orders", MessageSelector.byTag("A || B"), false, false);
        push("by-sql", "Orders", MessageSelector.bySql("price > 20 and color = 'red'"), false, false);
        push("in-order", "Ordered", MessageSelector.byTag("*"), true, false);
        push("delayed", "Later", MessageSelector.byTag("*"), false, false);
        push("paid", "Paid", MessageSelector.byTag("*"), false, false);
        push("again", "Orders", MessageSelector.byTag("A"), false, false);
        if (light) {
            request(15, map("consumerGroup", "%LMQ%light", "topic", "%LMQ%light", "queueId", "0", "commitOffset", "7"), "");
        }
        if (pops) {
            push("popped", "Orders", MessageSelector.byTag("*"), false, true);
        }
        DefaultMQProducer producer = new DefaultMQProducer("producers");
        producer.setNamesrvAddr(names);
        producer.start();
        for (int i = 0; i < MESSAGES; i++) {
            producer.send(message("Orders", "ABCD".substring(i % 4, i % 4 + 1), i));
            producer.send(message("Ordered", "A", i), (queues, m, key) -> queues.get((Integer) key % queues.size()), i % 2);
        }
        for (int level = 1; level <= 3; level++) {
            Message message = message("Later", "A", level);
            message.setDelayTimeLevel(level);
            producer.send(message);
        }
        TransactionMQProducer paid = new TransactionMQProducer("payers");
        paid.setNamesrvAddr(names);
        paid.setTransactionListener(new TransactionListener() {
            public LocalTransactionState executeLocalTransaction(Message message, Object arg) {
                return LocalTransactionState.COMMIT_MESSAGE;
            }

            public LocalTransactionState checkLocalTransaction(MessageExt message) {
                return LocalTransactionState.COMMIT_MESSAGE;
            }
        });
        paid.start();
        paid.sendMessageInTransaction(message("Paid", "A", 1), null);
        pull();
        poll();
        if (pops) { // by pop in order, which this client does not do; they stay without an acknowledgement
            Message timed = message("Later", "A", 9);
            MessageAccessor.putProperty(timed, "TIMER_DELAY_SEC", "600");
            producer.send(timed);
            request(200050, map("consumerGroup", "steps", "topic", "Ordered", "queueId", "-1", "maxMsgNums", "8", "invisibleTime", "300000",
                "pollTime", "1000", "bornTime", "" + System.currentTimeMillis(), "initMode", "0", "order", "true"), "");
        }
        long end = System.currentTimeMillis() + 90_000;
        while (System.currentTimeMillis() < end && !done(pops)) {
            Thread.sleep(1000);
        }
        Thread.sleep(3000); // for acknowledgements that are under way
        for (DefaultMQPushConsumer consumer : PUSHED) {
            consumer.shutdown();
        }
        producer.shutdown();
        paid.shutdown();
        remoting.shutdown();
        System.out.println(json(CONSUMED));
        System.err.println(COUNTS);
        System.exit(done(pops) ? 0 : 1);
    }

    private static boolean done(boolean pops) {
        Map<String, Integer> wanted = new HashMap<>(Map.of("pushed", MESSAGES, "tagged", MESSAGES / 2, "in-order", MESSAGES,
            "delayed", 3, "paid", 1, "again", MESSAGES / 4 + 1, "by-sql", 4));
        if (pops) {
            wanted.put("popped", MESSAGES);
        }
        return wanted.entrySet().stream().allMatch(each -> COUNTS.getOrDefault(each.getKey(), 0) >= each.getValue());
    }

    private static Message message(String topic, String tag, int number) {
        Message message = new Message(topic, tag, "k" + number, ("body " + number).getBytes(StandardCharsets.UTF_8));
        message.putUserProperty("price", String.valueOf(number));
        message.putUserProperty("color", number % 4 == 0 ? "red" : "blue");
        return message;
    }

    private static void push(String group, String topic, MessageSelector selector, boolean inOrder, boolean pop) throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(group);
        consumer.setNamesrvAddr(names);
        consumer.setInstanceName(group);
        consumer.setConsumeFromWhere(org.apache.rocketmq.common.consumer.ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(topic, selector);
        if (pop) {
            consumer.getClass().getMethod("setClientRebalance", boolean.class).invoke(consumer, false);
        }
        if (inOrder) {
            consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
                seen(group, messages);
                return ConsumeOrderlyStatus.SUCCESS;
            });
        } else {
            consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
                seen(group, messages);
                boolean first = group.equals("again") && COUNTS.get(group) == 1;
                context.setDelayLevelWhenNextConsume(1);
                return first ? ConsumeConcurrentlyStatus.RECONSUME_LATER : ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            });
        }
        consumer.start();
        PUSHED.add(consumer);
    }

    /** With each queue asked for by itself, and the offset told to the broker. */
    private static void pull() throws Exception {
        DefaultMQPullConsumer consumer = new DefaultMQPullConsumer("pulled");
        consumer.setNamesrvAddr(names);
        consumer.setInstanceName("pulled");
        consumer.start();
        for (MessageQueue queue : consumer.fetchSubscribeMessageQueues("Orders")) {
            PullResult found = consumer.pull(queue, "*", 0, 32);
            if (found.getPullStatus() == PullStatus.FOUND) {
                seen("pulled", found.getMsgFoundList());
            }
            consumer.updateConsumeOffset(queue, found.getNextBeginOffset());
            consumer.getOffsetStore().persist(queue);
        }
        consumer.shutdown();
    }

    private static void poll() throws Exception {
        DefaultLitePullConsumer consumer = new DefaultLitePullConsumer("polled");
        consumer.setNamesrvAddr(names);
        consumer.setInstanceName("polled");
        consumer.setConsumeFromWhere(org.apache.rocketmq.common.consumer.ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe("Orders", "*");
        consumer.start();
        long end = System.currentTimeMillis() + 30_000;
        while (COUNTS.getOrDefault("polled", 0) < MESSAGES && System.currentTimeMillis() < end) {
            seen("polled", consumer.poll(500));
        }
        consumer.poll(100);
        consumer.commitSync();
        consumer.shutdown();
    }

    private static void seen(String group, List<MessageExt> messages) {
        for (MessageExt message : messages) {
            CONSUMED.computeIfAbsent(group, key -> new ConcurrentSkipListMap<>())
                .computeIfAbsent(message.getTopic(), key -> new ConcurrentSkipListMap<>())
                .merge(message.getQueueId(), message.getQueueOffset() + 1, Math::max);
            COUNTS.merge(group, 1, Integer::sum);
        }
    }

    private static void topic(String name, int queues, String attributes) throws Exception {
        Map<String, String> fields = map("topic", name, "defaultTopic", "TBW102", "readQueueNums", "" + queues, "writeQueueNums",
            "" + queues, "perm", "6", "topicFilterType", "SINGLE_TAG", "topicSysFlag", "0", "order", "false");
        if (!attributes.isEmpty()) {
            fields.put("attributes", attributes);
        }
        request(17, fields, "");
    }

    private static void group(String text) throws Exception {
        request(200, map(), text);
    }

    private static String mapped(int queue) {
        return "{\"gen\":0,\"queueId\":" + queue + ",\"bname\":\"broker-a\",\"logicOffset\":0,\"startOffset\":0,\"endOffset\":-1,\"timeOfStart\":-1,\"timeOfEnd\":-1}";
    }

    private static Map<String, String> map(String... pairs) {
        Map<String, String> made = new HashMap<>();
        for (int i = 0; i < pairs.length; i += 2) {
            made.put(pairs[i], pairs[i + 1]);
        }
        return made;
    }

    /** Asked again until the broker is up. */
    private static void request(int code, Map<String, String> fields, String body) throws Exception {
        RemotingCommand answer = null;
        for (int i = 0; answer == null; i++) {
            RemotingCommand command = RemotingCommand.createRequestCommand(code, null);
            command.setExtFields(new HashMap<>(fields));
            command.setBody(body.isEmpty() ? null : body.getBytes(StandardCharsets.UTF_8));
            try {
                answer = remoting.invokeSync(BROKER, command, 3000);
            } catch (Exception notYet) {
                if (i == 400) {
                    throw notYet;
                }
                Thread.sleep(500);
            }
        }
        if (answer.getCode() != 0) {
            throw new IllegalStateException(code + ": " + answer.getCode() + " " + answer.getRemark());
        }
    }

    private static String json(Map<?, ?> held) {
        StringBuilder out = new StringBuilder("{");
        for (Map.Entry<?, ?> each : held.entrySet()) {
            out.append(out.length() > 1 ? "," : "").append('"').append(each.getKey()).append("\":");
            out.append(each.getValue() instanceof Map ? json((Map<?, ?>) each.getValue()) : each.getValue());
        }
        return out.append('}').toString();
    }
}
