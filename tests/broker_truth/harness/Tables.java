import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.util.Iterator;
import java.util.Map;
import org.apache.rocketmq.common.*;
import org.apache.rocketmq.store.*;

/**
 * The managers of a broker that keep their tables in files of config/, each loaded by its own load(), one folder after another.
 * A BrokerController is there for its settings alone: its constructor, which starts threads, does not run.
 */
public class Tables {
    private static final String BROKER = "org.apache.rocketmq.broker.";
    private final DefaultMessageStore store;
    private final Object controller;

    public Tables(Object store) throws Exception {
        this.store = (DefaultMessageStore) store;
        Class unsafe = Class.forName("sun.misc.Unsafe");
        Field only = unsafe.getDeclaredField("theUnsafe");
        only.setAccessible(true);
        Class type = Class.forName(BROKER + "BrokerController");
        this.controller = unsafe.getMethod("allocateInstance", new Class[] {Class.class}).invoke(only.get(null), new Object[] {type});
        BrokerConfig config = new BrokerConfig();
        set("brokerConfig", config);
        set("messageStoreConfig", this.store.getMessageStoreConfig());
        set("messageStore", this.store);
    }

    private void set(String name, Object value) throws Exception {
        Field field = controller.getClass().getDeclaredField(name);
        field.setAccessible(true);
        field.set(controller, value);
    }

    /** JSON: for each file whether its manager loads it, and what the manager holds then. */
    public String load(String root) throws Exception {
        store.getMessageStoreConfig().setStorePathRootDir(root);
        StringBuilder out = new StringBuilder("{");
        Object topics = made("topic.TopicConfigManager");
        loaded(out, "topics.json", topics);
        rows(out, table(topics, "topicConfigTable"), new String[] {"readQueueNums", "writeQueueNums", "perm", "topicSysFlag", "order", "attributes"});
        Object groups = made("subscription.SubscriptionGroupManager");
        loaded(out, "subscriptionGroup.json", groups);
        rows(out, table(groups, "subscriptionGroupTable"), new String[] {"retryQueueNums", "retryMaxTimes", "consumeEnable"});
        Object offsets = made("offset.ConsumerOffsetManager");
        loaded(out, "consumerOffset.json", offsets);
        offsets(out, table(offsets, "offsetTable"));
        Object delays = delays();
        loaded(out, "delayOffset.json", delays);
        plain(out, table(delays, "offsetTable"));
        loaded(out, "consumerFilter.json", made("filter.ConsumerFilterManager"));
        out.append("null]");
        Object orders = made("offset.ConsumerOrderInfoManager");
        orders = orders == null ? made("pop.orderly.QueueLevelConsumerManager") : orders;
        if (orders != null) {
            loaded(out, "consumerOrderInfo.json", orders);
            out.append("null]");
            loaded(out, "topicQueueMapping.json", made("topic.TopicQueueMappingManager"));
            out.append("null]");
            Object file = root + "/config/timermetrics";
            loaded(out, "timermetrics", Class.forName("org.apache.rocketmq.store.timer.TimerMetrics").getConstructors()[0].newInstance(new Object[] {file}));
            out.append("null]");
        }
        return out.append("}").toString();
    }

    private Object made(String name) throws Exception {
        Class type;
        try {
            type = Class.forName(BROKER + name);
        } catch (ClassNotFoundException other) {
            return null;
        }
        return type.getConstructor(new Class[] {controller.getClass()}).newInstance(new Object[] {controller});
    }

    private Object delays() throws Exception {
        Object service = made("schedule.ScheduleMessageService");
        if (service == null) { // up to 4.9 in the store
            Class type = Class.forName("org.apache.rocketmq.store.schedule.ScheduleMessageService");
            service = type.getConstructors()[0].newInstance(new Object[] {store});
        }
        return service;
    }

    /** ConfigManager.load alone: what a manager does after it, as setting offsets into queues, needs a whole store. */
    private void loaded(StringBuilder out, String file, Object manager) throws Exception {
        Class type = ConfigManager.class;
        MethodHandles.Lookup lookup = MethodHandles.privateLookupIn(manager.getClass(), MethodHandles.lookup());
        MethodHandle load = lookup.findSpecial(type, "load", MethodType.methodType(boolean.class), manager.getClass());
        String result;
        try {
            result = String.valueOf(load.invokeWithArguments(new Object[] {manager}));
        } catch (Throwable thrown) {
            result = text(String.valueOf(thrown));
        }
        out.append(out.length() > 1 ? "," : "").append(text(file)).append(":[").append(result).append(",");
    }

    private static Map table(Object manager, String name) throws Exception {
        for (Class type = manager.getClass(); type != null; type = type.getSuperclass()) {
            try {
                Field found = type.getDeclaredField(name);
                found.setAccessible(true);
                return (Map) found.get(manager);
            } catch (NoSuchFieldException above) {
                continue;
            }
        }
        throw new NoSuchFieldException(name);
    }

    private static void rows(StringBuilder out, Map table, String[] names) throws Exception {
        out.append("{");
        for (Iterator all = table.entrySet().iterator(); all.hasNext();) {
            Map.Entry entry = (Map.Entry) all.next();
            out.append(text(String.valueOf(entry.getKey()))).append(":{");
            boolean first = true;
            for (int i = 0; i < names.length; i++) {
                Object value;
                try {
                    Field field = entry.getValue().getClass().getDeclaredField(names[i]);
                    field.setAccessible(true);
                    value = field.get(entry.getValue());
                } catch (NoSuchFieldException before) {
                    continue;
                }
                out.append(first ? "" : ",").append(text(names[i])).append(":");
                first = false;
                if (value instanceof Map) {
                    plain(out, (Map) value);
                    out.setLength(out.length() - 1);
                } else {
                    out.append(value);
                }
            }
            out.append(all.hasNext() ? "}," : "}");
        }
        out.append("}]");
    }

    private static void offsets(StringBuilder out, Map table) {
        if (table == null) {
            out.append("{}]");
            return;
        }
        out.append("{");
        for (Iterator all = table.entrySet().iterator(); all.hasNext();) {
            Map.Entry entry = (Map.Entry) all.next();
            out.append(text(String.valueOf(entry.getKey()))).append(":");
            plain(out, (Map) entry.getValue());
            out.setLength(out.length() - 1);
            out.append(all.hasNext() ? "," : "");
        }
        out.append("}]");
    }

    private static void plain(StringBuilder out, Map table) {
        out.append("{");
        for (Iterator all = table.entrySet().iterator(); all.hasNext();) {
            Map.Entry entry = (Map.Entry) all.next();
            Object value = entry.getValue();
            out.append(text(String.valueOf(entry.getKey()))).append(":").append(value instanceof Long ? value.toString() : text(String.valueOf(value)));
            out.append(all.hasNext() ? "," : "");
        }
        out.append("}]");
    }

    private static String text(String value) {
        StringBuilder out = new StringBuilder("\"");
        for (int i = 0; i < value.length(); i++) {
            char c = value.charAt(i);
            if (c < 128 && Character.isLetterOrDigit(c)) {
                out.append(c);
            } else {
                String hex = "000" + Integer.toHexString(c);
                out.append("\\u").append(hex.substring(hex.length() - 4));
            }
        }
        return out.append("\"").toString();
    }
}
